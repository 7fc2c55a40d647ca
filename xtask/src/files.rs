//! Files of a package, and the programs that make it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a copy of a file with another mode.
pub(crate) fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    write(to, bytes, mode)
}

/// Writes a file, and the folders that it is in.
pub(crate) fn write(to: &Path, content: impl AsRef<[u8]>, mode: u32) -> Result<(), String> {
    make(to.parent().unwrap_or(to))?;
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    fs::write(to, content).map_err(failed)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(failed)
}

/// A folder that everybody may enter, and all above it.
pub(crate) fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        all.push(entry.map_err(failed)?.path());
    }
    all.sort();
    Ok(all)
}

/// What a program writes; that it fails, or is not there, is an error.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} ended with {}: {}", output.status, said.trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{program}: {error}"))
}

/// Returns the time of the current commit, in seconds since 1970, for the dates in a package
/// (`SOURCE_DATE_EPOCH` if it is set).
pub(crate) fn source_date(root: &Path) -> Result<String, String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let date = run(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))?;
    Ok(date.trim().to_owned())
}
