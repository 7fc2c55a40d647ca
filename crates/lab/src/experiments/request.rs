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

use super::{ALL, Options, Parameter, choose};
use crate::LabError;
use crate::document::Document;
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
        let (text, file) = (files::read(path)?, path.display().to_string());
        let document = Document::parse(&file, &text)?;
        let request: Self = document.read()?;
        let mut entries = if request.run.is_empty() { ALL.to_vec() } else { Vec::new() };
        for id in &request.run {
            let one = choose(std::slice::from_ref(id));
            entries.extend(one.map_err(|_| document.wrong("run", &format!("{id:?}"), &known()))?);
        }
        let parameters: Vec<&Parameter> =
            entries.iter().flat_map(|entry| entry.parameters).collect();
        for (name, value) in &request.set {
            let key = format!("set.{name}");
            let of_name: Vec<_> = parameters.iter().filter(|known| known.name == name).collect();
            if of_name.is_empty() {
                let names: Vec<&str> = parameters.iter().map(|known| known.name).collect();
                let expected = match names.is_empty() {
                    true => "none: the experiments have no parameters".to_owned(),
                    false => format!("one of {}", names.join(", ")),
                };
                return Err(document.wrong(&key, "an unknown parameter", &expected));
            }
            if let Some(known) =
                of_name.iter().find(|known| known.read(&value.to_string()).is_err())
            {
                return Err(document.wrong(&key, &value.to_string(), &known.range()));
            }
        }
        Ok(request)
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

fn known() -> String {
    let ids: Vec<&str> = ALL.iter().map(|entry| entry.id).collect();
    format!("all, or some of {}", ids.join(", "))
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
        let text = "run = [\"elaasar-2003\"]\nseed = 7\nreplications = 40\nquick = true\n[set]\ntolerance = 0.2\n";
        let request = read(text).unwrap();
        assert_eq!(request.run, ["elaasar-2003"]);
        let mut options = Options::new("out");
        options.set = vec!["tolerance=0.3".into()];
        options.replications = Some(5);
        request.apply(&mut options);
        assert_eq!((options.seed, options.replications, options.quick), (7, Some(5), true));
        assert_eq!(options.set, ["tolerance=0.2", "tolerance=0.3"], "the last one counts");
    }

    #[test]
    fn unknown_keys_are_reported_with_their_line() {
        let error = read("sed = 7\n").unwrap_err();
        for part in [".toml:1: sed: ", "found an unknown key, expected one of run, seed"] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
        for (text, part) in [
            ("\nseed = -1\n", ".toml:2: seed: found integer `-1`, expected u64"),
            ("run = [\"elaasar\"]\n", ".toml:1: run: found \"elaasar\", expected all, or some of "),
            ("[set]\ntoleranc = 1\n", ".toml:2: set.toleranc: found an unknown parameter, "),
            ("[set]\ntolerance = -1\n", ".toml:2: set.tolerance: found -1, expected 0"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{error} lacks {part}");
        }
        let error = Request::read(Path::new("/nonexistent.toml")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent.toml: "), "{error}");
    }
}
