//! Schemas of the tables that the lab writes: `datapackage.json`, by the Data Package standard,
//! version 2, with the key `unit` for each column that has one.

use serde::Serialize;

/// The name of the file beside the tables.
pub(crate) const FILE: &str = "datapackage.json";
const STANDARD: &str = "https://datapackage.org/profiles/2.0/datapackage.json";

/// `datapackage.json`.
#[derive(Debug, Serialize)]
pub(crate) struct Package {
    #[serde(rename = "$schema")]
    standard: &'static str,
    name: String,
    title: String,
    resources: Vec<Resource>,
}

/// One CSV file.
#[derive(Debug, Serialize)]
pub(crate) struct Resource {
    name: String,
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    format: &'static str,
    mediatype: &'static str,
    encoding: &'static str,
    schema: Schema,
}

#[derive(Debug, Serialize)]
struct Schema {
    fields: Vec<Field>,
    #[serde(rename = "missingValues")]
    missing: [&'static str; 1],
}

/// One column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    /// As in `name`; left out for counts, ratios and words.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'static str,
}

/// Types of columns, by their names in the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Integer,
    Number,
    String,
}

impl Package {
    pub(crate) fn new(name: &str, title: &str, resources: Vec<Resource>) -> Self {
        Self { standard: STANDARD, name: lower(name), title: title.to_owned(), resources }
    }

    /// The file's text.
    pub(crate) fn json(&self) -> Result<String, crate::LabError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| crate::LabError::Request(format!("{FILE}: {error}")))?;
        Ok(text + "\n")
    }
}

impl Resource {
    /// The table at `path` beside the schema.
    pub(crate) fn csv(path: &str, fields: Vec<Field>) -> Self {
        Self {
            name: lower(path.trim_end_matches(".csv")),
            path: path.to_owned(),
            kind: "table",
            format: "csv",
            mediatype: "text/csv",
            encoding: "utf-8",
            schema: Schema { fields, missing: [""] },
        }
    }

    /// The table `text` at `path`; the types of its columns follow from their values.
    pub(crate) fn read(path: &str, text: &str) -> Self {
        let rows = crate::csv::parse(text);
        let heads = rows.first().into_iter().flatten().enumerate();
        let field = |(column, name): (usize, &String)| {
            let values = rows.iter().skip(1).filter_map(|row| row.get(column).map(String::as_str));
            Field::of_values(name, values, "")
        };
        Self::csv(path, heads.map(field).collect())
    }
}

impl Field {
    /// A column whose unit, if it has one, is in parentheses in its name.
    pub(crate) fn new(name: &str, kind: Kind, description: &'static str) -> Self {
        let unit = match name {
            "seconds" => Some("s"),
            _ => unit_of(name),
        };
        Self { name: name.to_owned(), kind, unit: unit.map(str::to_owned), description }
    }

    /// A column whose type follows from its values: a text unless all are numbers.
    pub(crate) fn of_values<'a>(
        name: &str,
        values: impl Iterator<Item = &'a str>,
        description: &'static str,
    ) -> Self {
        let mut given = values.filter(|value| !value.is_empty()).peekable();
        let numbers = given.peek().is_some() && given.all(|value| value.parse::<f64>().is_ok());
        Self::new(name, if numbers { Kind::Number } else { Kind::String }, description)
    }
}

/// The last text in parentheses: `goodput (Mbit/s) ci95_low` has the unit Mbit/s.
fn unit_of(name: &str) -> Option<&str> {
    let (before, _) = name.rsplit_once(')')?;
    before.rsplit_once('(').map(|(_, unit)| unit)
}

/// A name as the standard demands.
fn lower(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let keep = |letter: char| if fits(letter) || "._-".contains(letter) { letter } else { '-' };
    name.to_lowercase().chars().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_units_and_types() {
        let unit = |name: &str| Field::new(name, Kind::Number, "").unit;
        assert_eq!(unit("file.goodput (Mbit/s) ci95_low").as_deref(), Some("Mbit/s"));
        assert_eq!((unit("seconds").as_deref(), unit("file.timeouts")), (Some("s"), None));
        let kind = |values: &[&str]| Field::of_values("x", values.iter().copied(), "").kind;
        assert_eq!(kind(&["1", "", "2.5"]), Kind::Number);
        assert_eq!((kind(&["0%", "1"]), kind(&["", ""])), (Kind::String, Kind::String));
        assert_eq!(lower("series/4/Hub rate"), "series-4-hub-rate");
    }
}
