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

#[test]
fn the_commands_of_the_guides_are_accepted() {
    let program = env!("CARGO_BIN_EXE_bentpipe-lab");
    walk::check_guides(program, |command| match command.split_once(' ') {
        Some(("lab", rest)) => Some(rest.to_owned()),
        Some(("bench", _)) => Some(command.to_owned()),
        _ if command.starts_with("demo") => Some(command.to_owned()),
        _ => None,
    });
}
