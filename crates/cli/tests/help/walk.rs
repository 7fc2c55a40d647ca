//! Reads the help of a program and of each of its commands, as a user does.

use std::path::Path;
use std::process::Command;

/// Checks that the help of each command ends with examples whose arguments are accepted. `line`
/// returns the arguments of `program` for an example without its first word, `bentpipe`.
pub(crate) fn check_examples(program: &str, line: impl Fn(&[String]) -> Vec<String>) {
    let mut commands = vec![Vec::new()];
    let mut checked = 0;
    while let Some(command) = commands.pop() {
        let help = help(program, &command);
        commands
            .extend(subcommands(&help).into_iter().map(|name| [&command[..], &[name]].concat()));
        let examples = examples(&help);
        assert!(!examples.is_empty(), "no example: {command:?}\n{help}");
        for example in examples {
            // With --help the words before it are parsed and nothing is done.
            let arguments = line(&example);
            help_of(program, &arguments, &format!("{example:?}"));
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked} examples were found");
}

fn help(program: &str, command: &[String]) -> String {
    help_of(program, command, &format!("{command:?}"))
}

fn help_of(program: &str, arguments: &[String], subject: &str) -> String {
    let output = Command::new(program).args(arguments).arg("--help").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{subject}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names below "Commands:", except those of other programs and clap's own.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        (!line.contains("(runs bentpipe-lab)")).then(|| name.split(' ').next())?
    });
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Returns the words of each example, without the program, its remark and what a shell does.
fn examples(help: &str) -> Vec<Vec<String>> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Example"));
    let examples = lines.filter_map(|line| {
        let (_, line) =
            line.split_once("bentpipe ").or_else(|| line.split_once("bentpipe-lab "))?;
        let line = line.split("     ").next()?.split(" && ").next()?.split(" > ").next()?;
        Some(line.split_whitespace().map(str::to_owned).collect())
    });
    examples.collect()
}

/// Checks that `program` accepts the arguments of the commands in README.md and docs/guide. `line`
/// returns the arguments of `program` for a command without its first word, `bentpipe`; `None` if
/// another program runs it.
pub(crate) fn check_guides(program: &str, line: impl Fn(&str) -> Option<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    let guides = std::fs::read_dir(root.join("docs/guide")).unwrap();
    pages.extend(guides.map(|entry| entry.unwrap().path()));
    let mut checked = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            let Some(arguments) = line(&command) else { continue };
            let shell = format!("exec {program} {arguments} --help");
            let output = Command::new("sh").args(["-c", &shell]).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: bentpipe {command}: {errors}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked} commands were found");
}

/// Returns the commands of `bentpipe` in a page's blocks of code, without that word, remarks and
/// what follows in the line.
fn commands(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut commands = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let indented = line.strip_prefix("    ");
        let Some(line) = fenced.then_some(line).or(indented) else { continue };
        let line = line.split_once("$ ").map_or(line, |(_, command)| command);
        let Some(command) = line.strip_prefix("bentpipe ") else { continue };
        let ends = [" #", " && ", " | ", " > ", " >> "];
        let end = ends.iter().filter_map(|end| command.find(end)).min();
        commands.push(command[..end.unwrap_or(command.len())].to_owned());
    }
    commands
}
