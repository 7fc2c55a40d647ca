//! The `bentpipe` command: argument parsing and nothing else.

fn main() {}
