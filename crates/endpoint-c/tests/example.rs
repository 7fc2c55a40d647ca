//! The example in C, compiled and run with the static library.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder with the static library, which Cargo builds beside the test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let mut folders = test.ancestors().skip(1);
    let found = folders.find(|folder| folder.join("libbentpipe.a").exists());
    found.expect("libbentpipe.a was built with the test").to_owned()
}

#[test]
fn the_example_sends_and_receives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = format!("bentpipe-echo-{}", std::process::id());
    let program = std::env::temp_dir().join(name);
    let compiled = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(root.join("examples/echo.c"))
        .arg("-I")
        .arg(root.join("include"))
        .arg(library_folder().join("libbentpipe.a"))
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s"])
        .output()
        .expect("a C compiler, which the build needs as well");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    let run = Command::new(&program).output();
    std::fs::remove_file(&program).unwrap();
    let run = run.unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    assert_eq!(run.stdout, b"hello over XSTP\n");
}
