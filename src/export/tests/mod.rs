//! Tests of the exporters: each format is what it claims to be, and traces come back as they went.

mod film;
mod foreign;
mod hostile;
mod perfetto;
mod pictures;
mod round_trip;
