//! Experiment files: experiments and options in TOML.
//!
//! ```toml
//! run = ["elaasar-2003"]
//! seed = 7
//! replications = 40
//!
//! [set]
//! tolerance = 0.25
//! ```

use super::Options;
use crate::LabError;
use crate::files;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The content of an experiment file; every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Names of experiments.
    #[serde(default)]
    pub run: Vec<String>,
    /// The seed.
    pub seed: Option<u64>,
    /// Replications of each point.
    pub replications: Option<u32>,
    /// Fewer points and replications.
    pub quick: Option<bool>,
    /// Parameters, as of `--set`.
    #[serde(default)]
    pub set: BTreeMap<String, f64>,
}

impl Request {
    /// Reads an experiment file.
    ///
    /// # Errors
    /// If the file cannot be read or has an unknown key or invalid value; the message names the
    /// file, the line and the accepted values.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = files::read(path)?;
        toml::from_str(&text).map_err(|error| {
            LabError::Request(format!("{}: {}", path.display(), error.to_string().trim_end()))
        })
    }

    /// Applies the file to `options`. Options of the command line take precedence.
    pub fn apply(&self, options: &mut Options) {
        options.seed = self.seed.unwrap_or(options.seed);
        options.replications = options.replications.or(self.replications);
        options.quick |= self.quick.unwrap_or(false);
        let ours = self.set.iter().map(|(name, value)| format!("{name}={value}"));
        options.set = ours.chain(std::mem::take(&mut options.set)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Request, String> {
        let path = std::env::temp_dir().join(format!(
            "bentpipe-request-{}-{}.toml",
            std::process::id(),
            text.len()
        ));
        std::fs::write(&path, text).unwrap();
        let request = Request::read(&path).map_err(|error| error.to_string());
        std::fs::remove_file(&path).unwrap();
        request
    }

    #[test]
    fn options_of_the_command_line_override_the_file() {
        let text =
            "run = [\"a\"]\nseed = 7\nreplications = 40\nquick = true\n[set]\nx = 1\ny = 2.5\n";
        let request = read(text).unwrap();
        assert_eq!(request.run, ["a"]);
        let mut options = Options::new("out");
        options.set = vec!["x=3".into()];
        options.replications = Some(5);
        request.apply(&mut options);
        assert_eq!((options.seed, options.replications, options.quick), (7, Some(5), true));
        assert_eq!(options.set, ["x=1", "y=2.5", "x=3"], "the last one counts");
    }

    #[test]
    fn unknown_keys_are_reported_with_their_line() {
        let error = read("sed = 7\n").unwrap_err();
        for part in [".toml: ", "line 1", "unknown field `sed`", "`replications`"] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
        let error = read("seed = -1\n\n").unwrap_err();
        assert!(error.contains("line 1"), "{error}");
        let error = Request::read(Path::new("/nonexistent.toml")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent.toml: "), "{error}");
    }
}
