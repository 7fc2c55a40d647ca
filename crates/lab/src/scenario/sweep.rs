//! The points of a sweep: a grid of lists, and lists that vary together.

use crate::LabError;
use crate::document::{Document, Replacement};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum number of points.
const MOST: usize = 100_000;

/// The swept keys with their values.
pub(super) struct Axes<'a> {
    /// All swept keys, in the order of the file.
    pub(super) keys: Vec<String>,
    /// Each axis has some of the keys, and positions with a value for each of these.
    axes: Vec<Vec<Vec<Replacement<'a>>>>,
}

/// A key with its list.
struct Swept<'a> {
    path: String,
    at: usize,
    values: Vec<Spanned<DeValue<'a>>>,
}

impl<'a> Axes<'a> {
    /// Removes the sweep from `document`.
    pub(super) fn take(document: &mut Document<'a>) -> Result<Self, LabError> {
        let grid = lists(document, "sweep")?;
        let together = lists(document, "sweep_together")?;
        let axis = |swept: &Swept<'a>| {
            let values = swept.values.iter().cloned();
            values.map(|value| Replacement { path: swept.path.clone(), value }).collect::<Vec<_>>()
        };
        let mut axes: Vec<Vec<Vec<Replacement<'a>>>> = Vec::new();
        if let Some(first) = together.first() {
            let count = first.values.len();
            if let Some(other) = together.iter().find(|other| other.values.len() != count) {
                let found = format!("a list of {}", other.values.len());
                let expected = format!("{count} values, as of {}", first.path);
                let path = format!("sweep_together.{}", other.path);
                return Err(document.wrong(&path, &found, &expected));
            }
            let lists: Vec<_> = together.iter().map(axis).collect();
            let position = |place: usize| lists.iter().map(|list| list[place].clone()).collect();
            axes.push((0..count).map(position).collect());
        }
        axes.extend(
            grid.iter().map(|swept| axis(swept).into_iter().map(|one| vec![one]).collect()),
        );
        let points = axes.iter().try_fold(1_usize, |all, axis| all.checked_mul(axis.len()));
        if points.is_none_or(|points| points > MOST) {
            return Err(document.wrong("sweep", "more points", &format!("at most {MOST}")));
        }
        let keys = together.iter().chain(&grid).map(|swept| swept.path.clone()).collect();
        Ok(Self { keys, axes })
    }

    /// The replacements of each point, one for each key; the last axis varies fastest.
    pub(super) fn points(&self) -> Vec<Vec<Replacement<'a>>> {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            let with = |point: &Vec<Replacement<'a>>| {
                let joined = |position: &Vec<Replacement<'a>>| [&point[..], &position[..]].concat();
                axis.iter().map(joined).collect::<Vec<_>>()
            };
            points = points.iter().flat_map(with).collect();
        }
        points
    }
}

/// Removes the table `name` with its lists, in the order of the file.
fn lists<'a>(document: &mut Document<'a>, name: &str) -> Result<Vec<Swept<'a>>, LabError> {
    let whole = document.clone();
    let mut found = Vec::new();
    match document.take(name).map(Spanned::into_inner) {
        None => {}
        Some(DeValue::Table(table)) => collect(&whole, name, "", &table, &mut found)?,
        Some(_) => return Err(whole.wrong(name, "no table", "a table of keys with lists")),
    }
    found.sort_by_key(|swept| swept.at);
    Ok(found)
}

fn collect<'a>(
    document: &Document<'a>,
    name: &str,
    at: &str,
    table: &DeTable<'a>,
    found: &mut Vec<Swept<'a>>,
) -> Result<(), LabError> {
    for (key, value) in table {
        let dot = if at.is_empty() { "" } else { "." };
        let path = format!("{at}{dot}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => collect(document, name, &path, inner, found)?,
            DeValue::Array(values) if !values.is_empty() => {
                let values = values.iter().cloned().collect();
                found.push(Swept { path, at: key.span().start, values });
            }
            _ => {
                let place = format!("{name}.{path}");
                return Err(document.wrong(&place, "no list", "a list of values, such as [1, 2]"));
            }
        }
    }
    Ok(())
}

/// Reads `KEY=VALUE` of the command line; a value that is not TOML is a text.
pub(super) fn setting(word: &str) -> Result<Replacement<'_>, LabError> {
    let Some((path, value)) = word.split_once('=') else {
        let message = format!("--set: found {word:?}, expected KEY=VALUE");
        return Err(LabError::Request(message));
    };
    let text = value.trim();
    let value = DeValue::parse(text).map(Spanned::into_inner);
    let value = value.unwrap_or_else(|_| DeValue::String(text.into()));
    Ok(Replacement { path: path.trim().to_owned(), value: Spanned::new(0..0, value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::shown;

    fn points(text: &str) -> Result<Vec<String>, String> {
        let mut document = Document::parse("f.toml", text).unwrap();
        let axes = Axes::take(&mut document).map_err(|error| error.to_string())?;
        let point = |point: Vec<Replacement<'_>>| {
            let one =
                |one: &Replacement<'_>| format!("{}={}", one.path, shown(one.value.get_ref()));
            point.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        Ok(axes.points().into_iter().map(point).collect())
    }

    #[test]
    fn grid_has_all_combinations_and_lists_vary_together() {
        let grid = points("[sweep]\nb.x = [1, 2]\na = [\"u\", \"v\"]\n").unwrap();
        assert_eq!(grid, ["b.x=1 a=u", "b.x=1 a=v", "b.x=2 a=u", "b.x=2 a=v"]);
        let both = "[sweep_together]\nx = [1, 2]\ny = [3, 4]\n[sweep]\nz = [5, 6]\n";
        let both = points(both).unwrap();
        assert_eq!(both, ["x=1 y=3 z=5", "x=1 y=3 z=6", "x=2 y=4 z=5", "x=2 y=4 z=6"]);
        assert_eq!(points("a = 1\n").unwrap(), [""], "one point without a sweep");
    }

    #[test]
    fn invalid_sweeps_name_line_and_key() {
        let error = points("a = 1\n[sweep]\nb = 2\n").unwrap_err();
        assert_eq!(
            error,
            "f.toml:3: sweep.b: found no list, expected a list of values, such as [1, 2]"
        );
        let error = points("[sweep_together]\nx = [1, 2]\ny = [3]\n").unwrap_err();
        assert!(error.contains("y: found a list of 1, expected 2 values, as of x"), "{error}");
    }
}
