//! `--help` of each command of `bentpipe-lab`.

#[path = "../../cli/tests/help/walk.rs"]
mod walk;

#[test]
fn the_help_of_each_command_has_examples_that_are_accepted() {
    let program = env!("CARGO_BIN_EXE_bentpipe-lab");
    walk::check_examples(program, |example| match example {
        [first, rest @ ..] if first == "lab" => rest.to_vec(),
        _ => example.to_vec(),
    });
}
