//! Lessons in their order: those that come with the program, and a folder of one's own.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::parse::LONGEST;
use super::{Lesson, Mistake};
use crate::words::Language;

/// The lessons that come with the program: each file's name, and its text in each language.
const BUNDLED: &[(&str, &str, Option<&str>)] = &[
    (
        "lessons/01-why-split.md",
        include_str!("../../lessons/01-why-split.md"),
        Some(include_str!("../../lessons/de/01-why-split.md")),
    ),
    (
        "lessons/02-data-parallel.md",
        include_str!("../../lessons/02-data-parallel.md"),
        Some(include_str!("../../lessons/de/02-data-parallel.md")),
    ),
    (
        "lessons/03-pipeline-bubble.md",
        include_str!("../../lessons/03-pipeline-bubble.md"),
        Some(include_str!("../../lessons/de/03-pipeline-bubble.md")),
    ),
    (
        "lessons/04-micro-batches.md",
        include_str!("../../lessons/04-micro-batches.md"),
        Some(include_str!("../../lessons/de/04-micro-batches.md")),
    ),
    (
        "lessons/05-gpipe-and-1f1b.md",
        include_str!("../../lessons/05-gpipe-and-1f1b.md"),
        Some(include_str!("../../lessons/de/05-gpipe-and-1f1b.md")),
    ),
    (
        "lessons/06-tensor-parallel.md",
        include_str!("../../lessons/06-tensor-parallel.md"),
        Some(include_str!("../../lessons/de/06-tensor-parallel.md")),
    ),
    (
        "lessons/07-heads-and-vocabulary.md",
        include_str!("../../lessons/07-heads-and-vocabulary.md"),
        Some(include_str!("../../lessons/de/07-heads-and-vocabulary.md")),
    ),
    (
        "lessons/08-collectives-and-rings.md",
        include_str!("../../lessons/08-collectives-and-rings.md"),
        Some(include_str!("../../lessons/de/08-collectives-and-rings.md")),
    ),
    (
        "lessons/09-overlap.md",
        include_str!("../../lessons/09-overlap.md"),
        Some(include_str!("../../lessons/de/09-overlap.md")),
    ),
    (
        "lessons/10-interleaving-and-zero-bubble.md",
        include_str!("../../lessons/10-interleaving-and-zero-bubble.md"),
        Some(include_str!(
            "../../lessons/de/10-interleaving-and-zero-bubble.md"
        )),
    ),
    (
        "lessons/11-hybrids.md",
        include_str!("../../lessons/11-hybrids.md"),
        Some(include_str!("../../lessons/de/11-hybrids.md")),
    ),
    (
        "lessons/12-choosing.md",
        include_str!("../../lessons/12-choosing.md"),
        Some(include_str!("../../lessons/de/12-choosing.md")),
    ),
    (
        "lessons/13-zero-and-fsdp.md",
        include_str!("../../lessons/13-zero-and-fsdp.md"),
        Some(include_str!("../../lessons/de/13-zero-and-fsdp.md")),
    ),
    (
        "lessons/14-reading-a-trace.md",
        include_str!("../../lessons/14-reading-a-trace.md"),
        Some(include_str!("../../lessons/de/14-reading-a-trace.md")),
    ),
    (
        "lessons/15-stragglers.md",
        include_str!("../../lessons/15-stragglers.md"),
        Some(include_str!("../../lessons/de/15-stragglers.md")),
    ),
    (
        "lessons/16-summary.md",
        include_str!("../../lessons/16-summary.md"),
        Some(include_str!("../../lessons/de/16-summary.md")),
    ),
];

/// Lessons in their order.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The lessons.
    pub lessons: Vec<Arc<Lesson>>,
    /// What is wrong with others.
    pub mistakes: Vec<Mistake>,
}

impl Course {
    /// The lessons that come with the program; those that are not in `language` yet in English.
    pub fn bundled(language: Language) -> Self {
        let files = BUNDLED.iter().map(|(file, english, german)| {
            let text = match language {
                Language::English => english,
                Language::German => german.as_ref().unwrap_or(english),
            };
            ((*file).to_owned(), (*text).to_owned())
        });
        Self::of(files)
    }

    /// From files' names and texts, in the order of their names.
    pub fn of(files: impl Iterator<Item = (String, String)>) -> Self {
        let mut course = Self::default();
        for (file, text) in files {
            match Lesson::parse(&file, &text) {
                Ok(lesson) => {
                    let twin = course.lessons.iter().find(|other| other.id == lesson.id);
                    if let Some(other) = twin {
                        let what = format!(
                            "{} is called {:?} too; each lesson's file needs a name of its own",
                            other.file, lesson.id
                        );
                        course.mistakes.push(Mistake {
                            file,
                            line: 1,
                            what,
                        });
                    } else {
                        course.lessons.push(Arc::new(lesson));
                    }
                }
                Err(mistakes) => course.mistakes.extend(mistakes),
            }
        }
        course
    }

    /// The lesson of that name.
    pub fn lesson(&self, id: &str) -> Option<&Arc<Lesson>> {
        self.lessons.iter().find(|lesson| lesson.id == id)
    }
}

/// A folder of lessons, or a single one, read again when a file in it was saved.
#[derive(Debug)]
pub struct Files {
    path: PathBuf,
    seen: Vec<(PathBuf, Option<SystemTime>, u64)>,
}

/// So many lessons a folder may hold.
const MOST: usize = 1000;

impl Files {
    /// Of a folder, or a file; not read yet.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: Vec::new(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lessons, if anything was saved since they were read last.
    pub fn poll(&mut self) -> Option<std::io::Result<Course>> {
        let found = match found(&self.path) {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        if found == self.seen && !self.seen.is_empty() {
            return None;
        }
        let mut unread = Vec::new();
        let mut texts = Vec::new();
        for (path, ..) in &found {
            let name = path.display().to_string();
            match read(path) {
                Ok(text) => texts.push((name, text)),
                Err(error) => unread.push(Mistake {
                    file: name,
                    line: 1,
                    what: format!("cannot be read: {error}"),
                }),
            }
        }
        // What could not be read, as it was just being saved, is read at the next look.
        self.seen = if unread.is_empty() { found } else { Vec::new() };
        let mut course = Course::of(texts.into_iter());
        course.mistakes.extend(unread);
        Some(Ok(course))
    }
}

/// A lesson's text, and no more of it than a lesson may be long.
fn read(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(LONGEST as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The lessons' files, with when they were saved and how long they are.
fn found(path: &Path) -> std::io::Result<Vec<(PathBuf, Option<SystemTime>, u64)>> {
    let about = |path: PathBuf| -> std::io::Result<(PathBuf, Option<SystemTime>, u64)> {
        let about = fs::metadata(&path)?;
        Ok((path, about.modified().ok(), about.len()))
    };
    if path.is_file() {
        return Ok(vec![about(path.to_owned())?]);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path)?.take(MOST) {
        let file = entry?.path();
        let named = file.extension().is_some_and(|ending| ending == "md");
        let about_them = file
            .file_stem()
            .is_some_and(|name| name.eq_ignore_ascii_case("readme"));
        let hidden = file
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if named && !about_them && !hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        let why = format!(
            "there is no lesson in {}; files that end in .md were expected",
            path.display()
        );
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, why));
    }
    files.into_iter().map(about).collect()
}
