//! What ranks that talk must do, on real threads.
