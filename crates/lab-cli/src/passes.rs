//! `bentpipe-lab passes`.

use crate::{Outcome, values};
use lab::passes::{self, Passes, Place};
use std::path::PathBuf;
use units::Span;

/// Compute the delay over a constellation of satellites as a trace
///
/// Writes a course of delay between a user and a gateway station over the satellites of FILE, or of
/// a Walker constellation, as CSV for `trace` of a scenario's link. Every planning interval the
/// satellite that is highest at the user is assigned; while none serves, the rate is 0. Two-line
/// elements are read from a file, nothing is fetched; they are good for some days around their
/// epoch.
#[derive(clap::Args)]
#[command(
    after_help = "Example: bentpipe lab passes --walker 53:1584/72/17 --user 48.2,16.4 --station 48.1,11.6"
)]
pub(crate) struct Arguments {
    /// Two-line elements, with or without lines of names
    #[arg(value_name = "FILE", required_unless_present = "walker", conflicts_with = "walker")]
    elements: Option<PathBuf>,
    /// A Walker constellation INCLINATION:SATELLITES/PLANES/PHASING
    #[arg(long, value_name = "I:T/P/F")]
    walker: Option<String>,
    /// Its altitude in km
    #[arg(long, value_name = "KM", default_value_t = 550.0)]
    altitude: f64,
    /// The user: degrees north, degrees east and metres
    #[arg(long, value_name = "LAT,LON[,M]", value_parser = place, allow_hyphen_values = true)]
    user: Place,
    /// The gateway station
    #[arg(long, value_name = "LAT,LON[,M]", value_parser = place, allow_hyphen_values = true)]
    station: Place,
    /// Beginning, UTC, such as 2026-01-31T12:00:00; default: the latest epoch of the elements
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Length of the course
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "600")]
    duration: Span,
    /// Interval between values of the delay
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "1")]
    step: Span,
    /// Planning interval; Starlink's is 15 s
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, default_value = "15")]
    plan: Span,
    /// Minimum elevation at both places in degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 25.0)]
    elevation: f64,
    /// Loss from 0 to 1 for 0.1 s at each hand-over
    #[arg(long, value_name = "LOSS")]
    handover_loss: Option<f64>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let time = |text: &String| {
        let wrong = || format!("--from: found {text:?}, expected a time like 2026-01-31T12:00:00");
        passes::time(text).ok_or_else(wrong)
    };
    let elements = match (&arguments.walker, &arguments.elements) {
        (Some(walker), _) => passes::walker(walker, arguments.altitude),
        (None, Some(file)) => passes::read(file),
        (None, None) => unreachable!("one of them is required"),
    };
    let passes = Passes {
        user: arguments.user,
        station: arguments.station,
        from: arguments.from.as_ref().map(time).transpose()?,
        length: arguments.duration,
        step: arguments.step,
        plan: arguments.plan,
        elevation: arguments.elevation,
        handover_loss: arguments.handover_loss,
    };
    let csv = elements.and_then(|elements| passes.csv(&elements));
    values::print(&csv.map_err(|error| error.to_string())?)
}

fn place(text: &str) -> Result<Place, String> {
    let expected = "expected degrees north and east, such as 48.2,16.4, and metres";
    Place::parse(text).ok_or_else(|| expected.to_owned())
}
