//! Passes of satellites in low orbits: the course of the delay between a user and a gateway
//! station over the satellites of a constellation, as a trace for a link.
//!
//! ```text
//!   user ── slant range ── satellite ── slant range ── station      delay = both / c
//! ```
//!
//! Positions are those of SGP4 (the crate `sgp4`) in an Earth-fixed frame turned by the mean
//! sidereal time; polar motion and the equation of the equinoxes, below 1 km, are left out.
//!
//! A satellite is assigned for a planning interval. Starlink's begins at seconds 12, 27, 42 and 57
//! of each minute (Tanveer et al., CoNEXT Companion 2023; Mohan et al., WWW 2024). The satellite
//! with the highest elevation at the user is taken, of those that both places see at the beginning
//! and at the end of the interval. Without one nothing is sent. What a hand-over costs depends on
//! the terminal; a share of loss for the first 100 ms may be given.

use crate::{LabError, files};
use sgp4::chrono::{NaiveDate, NaiveDateTime};
use sgp4::{Constants, Elements, MinutesSinceEpoch};
use std::f64::consts::TAU;
use std::fmt::Write;
use std::path::Path;
use units::Span;

/// Speed of light in km/s.
const LIGHT: f64 = 299_792.458;
/// Equatorial radius in km, and flattening (WGS 84).
const RADIUS: f64 = 6_378.137;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// Gravitational parameter of the Earth in km³/s² (WGS 84).
const GRAVITY: f64 = 398_600.441_8;
/// Second of the minute at which a planning interval begins.
const PHASE_MS: i64 = 12_000;
/// Duration of the loss at a hand-over.
const HANDOVER: Span = Span::from_millis(100);
/// Maximum number of steps of a course.
const MOST_STEPS: u64 = 1_000_000;
/// Maximum number of satellites.
const MOST_SATELLITES: u32 = 100_000;

/// A place on the ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Geodetic latitude in degrees, north positive.
    pub latitude: f64,
    /// Longitude in degrees, east positive.
    pub longitude: f64,
    /// Height above the ellipsoid in m.
    pub height: f64,
}

impl Place {
    /// Parses `LATITUDE,LONGITUDE[,HEIGHT]`.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<f64> =
            text.split(',').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
        let (latitude, longitude, height) = match numbers[..] {
            [latitude, longitude] => (latitude, longitude, 0.0),
            [latitude, longitude, height] => (latitude, longitude, height),
            _ => return None,
        };
        let fits = latitude.abs() <= 90.0 && longitude.abs() <= 360.0 && height.abs() <= 50_000.0;
        fits.then_some(Self { latitude, longitude, height })
    }

    /// Returns the position in km and the direction of the zenith, Earth-fixed.
    fn position(&self) -> ([f64; 3], [f64; 3]) {
        let (sin, cos) = self.latitude.to_radians().sin_cos();
        let (east, prime) = self.longitude.to_radians().sin_cos();
        let zenith = [cos * prime, cos * east, sin];
        let squared = FLATTENING * (2.0 - FLATTENING);
        let normal = RADIUS / (1.0 - squared * sin * sin).sqrt();
        let height = self.height / 1e3;
        let out = normal + height;
        let up = normal * (1.0 - squared) + height;
        ([out * zenith[0], out * zenith[1], up * sin], zenith)
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Passes {
    /// The user.
    pub user: Place,
    /// The gateway station.
    pub station: Place,
    /// Beginning, UTC; `None`: the latest epoch of the elements.
    pub from: Option<NaiveDateTime>,
    /// Length of the course.
    pub length: Span,
    /// Interval between values of the delay.
    pub step: Span,
    /// Planning interval.
    pub plan: Span,
    /// Minimum elevation at both places in degrees.
    pub elevation: f64,
    /// Loss probability for 0.1 s at a hand-over; `None`: no column of losses.
    pub handover_loss: Option<f64>,
}

/// Parses a time such as `2026-01-31T12:00:00`, UTC.
pub fn time(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").ok()
}

/// Reads a file of two-line elements, with or without lines of names.
///
/// # Errors
/// If the file cannot be read, or a set is invalid.
pub fn read(file: &Path) -> Result<Vec<Elements>, LabError> {
    elements(&files::read(file)?)
}

/// Parses two-line elements, with or without a line of names.
///
/// # Errors
/// The first set that is invalid.
fn elements(text: &str) -> Result<Vec<Elements>, LabError> {
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let text = lines.join("\n");
    let named = lines.first().is_some_and(|line| !line.starts_with("1 "));
    let parsed = if named { sgp4::parse_3les(&text) } else { sgp4::parse_2les(&text) };
    parsed.map_err(|error| LabError::Request(format!("two-line elements: {error}")))
}

/// Returns a Walker constellation `INCLINATION:SATELLITES/PLANES/PHASING` (Walker 1984) in
/// circular orbits `altitude` km above the equatorial radius, at the beginning of 2026.
///
/// # Errors
/// If `text` has another form.
pub fn walker(text: &str, altitude: f64) -> Result<Vec<Elements>, LabError> {
    let wrong = || {
        LabError::Request(format!(
            "--walker: found {text:?} at {altitude} km, expected \
             INCLINATION:SATELLITES/PLANES/PHASING, such as 53:1584/72/17, at 200 to 40000 km"
        ))
    };
    let (inclination, rest) = text.split_once(':').ok_or_else(wrong)?;
    let inclination: f64 = inclination.parse().map_err(|_| wrong())?;
    let counts: Vec<u32> =
        rest.split('/').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let [satellites, planes, phasing] = counts[..] else { return Err(wrong()) };
    let whole = planes > 0 && satellites.is_multiple_of(planes) && phasing < planes;
    let fits = whole && (1..=MOST_SATELLITES).contains(&satellites);
    if !fits || !(0.0..=180.0).contains(&inclination) || !(200.0..=40_000.0).contains(&altitude) {
        return Err(wrong());
    }
    let epoch = NaiveDate::from_ymd_opt(2026, 1, 1).and_then(|day| day.and_hms_opt(0, 0, 0));
    let datetime = epoch.ok_or_else(wrong)?;
    let mean_motion = (GRAVITY / (RADIUS + altitude).powi(3)).sqrt() * 86_400.0 / TAU;
    let each = satellites / planes;
    let one = |number: u32| {
        let (plane, place) = (number / each, number % each);
        let turn = f64::from(place) / f64::from(each);
        let shift = f64::from(phasing * plane) / f64::from(satellites);
        Elements {
            object_name: Some(format!("{plane}/{place}")),
            international_designator: None,
            norad_id: u64::from(number),
            classification: sgp4::Classification::Unclassified,
            datetime,
            mean_motion_dot: 0.0,
            mean_motion_ddot: 0.0,
            drag_term: 0.0,
            element_set_number: 0,
            inclination,
            right_ascension: 360.0 * f64::from(plane) / f64::from(planes),
            eccentricity: 0.0,
            argument_of_perigee: 0.0,
            mean_anomaly: 360.0 * (turn + shift).fract(),
            mean_motion,
            revolution_number: 0,
            ephemeris_type: 0,
        }
    };
    Ok((0..satellites).map(one).collect())
}

/// A satellite with what its propagation needs.
struct Satellite {
    constants: Constants,
    /// Minutes from its epoch to the beginning.
    offset: f64,
}

/// The satellites, and both places.
struct Sky {
    satellites: Vec<Satellite>,
    ends: [([f64; 3], [f64; 3]); 2],
    /// Years since J2000 at the beginning.
    years: f64,
    least: f64,
}

impl Passes {
    /// Returns the course as CSV for `trace` of a link, with the columns `time_s`, `delay_ms` and
    /// `rate_bit_s`, which is 0 where no satellite serves, and `loss` if there is one at hand-overs.
    ///
    /// # Errors
    /// If there are no satellites, elements are impossible, or a value is out of range.
    pub fn csv(&self, elements: &[Elements]) -> Result<String, LabError> {
        let wrong = |text: String| LabError::Request(format!("passes: {text}"));
        let last = elements.iter().map(|one| one.datetime).max();
        let last = last.ok_or_else(|| wrong("found no elements".to_owned()))?;
        let steps = self.length.as_nanos() / self.step.as_nanos().max(1);
        if self.step < Span::from_millis(1) || !(2..=MOST_STEPS).contains(&steps) {
            return Err(wrong(format!("found {steps} steps, expected 2 to {MOST_STEPS} of 1 ms")));
        }
        if self.plan < self.step {
            return Err(wrong("expected a planning interval of a step at least".to_owned()));
        }
        let loss = self.handover_loss.unwrap_or_default();
        if !(0.0..=1.0).contains(&loss) || (loss > 0.0 && self.step <= HANDOVER) {
            return Err(wrong("expected a loss from 0 to 1 and steps above 0.1 s".to_owned()));
        }
        let from = self.from.unwrap_or(last);
        let sky = Sky::new(self, elements, from)?;
        self.course(&sky, from, steps)
    }

    fn course(&self, sky: &Sky, from: NaiveDateTime, steps: u64) -> Result<String, LabError> {
        let plan_ms = (self.plan.as_nanos() / 1_000_000).cast_signed();
        let began_ms = from.and_utc().timestamp_millis();
        let (mut rows, mut serving, mut planned) = (Rows::new(self.handover_loss), None, None);
        for step in 0..steps {
            let at = self.step * step;
            let now_ms = began_ms + (at.as_nanos() / 1_000_000).cast_signed();
            let interval = (now_ms - PHASE_MS).div_euclid(plan_ms);
            let mut handover = false;
            if planned.replace(interval) != Some(interval) {
                let end_ms = (interval + 1) * plan_ms + PHASE_MS - began_ms;
                let next = sky.highest(at.as_secs_f64(), end_ms as f64 / 1e3);
                handover = step > 0 && next != serving;
                serving = next;
            }
            let delay = serving.and_then(|serving| sky.delay_ms(serving, at.as_secs_f64()));
            rows.add(at, delay, handover);
        }
        if rows.served == 0 {
            let text = "passes: found no satellite that both places see".to_owned();
            return Err(LabError::Request(text));
        }
        let share = 100.0 * rows.served as f64 / steps as f64;
        let loss = if self.handover_loss.is_some() { ",loss" } else { "" };
        Ok(format!(
            "# {} satellites from {from} UTC: served {share:.2} % of the time, {} hand-overs, \
             {:.2} to {:.2} ms one way\ntime_s,delay_ms,rate_bit_s{loss}\n{}",
            sky.satellites.len(),
            rows.handovers,
            rows.least,
            rows.most,
            rows.text
        ))
    }
}

/// The rows of a course, and what is counted in them.
struct Rows {
    text: String,
    loss: Option<f64>,
    served: u64,
    handovers: u64,
    least: f64,
    most: f64,
}

impl Rows {
    fn new(loss: Option<f64>) -> Self {
        Self { text: String::new(), loss, served: 0, handovers: 0, least: f64::MAX, most: 0.0 }
    }

    fn add(&mut self, at: Span, delay_ms: Option<f64>, handover: bool) {
        let values = delay_ms.map_or(",0".to_owned(), |delay| format!("{delay:.3},"));
        let loss = |now: bool| match self.loss {
            Some(loss) => format!(",{}", if now { loss } else { 0.0 }),
            None => String::new(),
        };
        let lossy = handover && self.loss.is_some();
        writeln!(self.text, "{},{values}{}", at.as_secs_f64(), loss(lossy)).expect("a string");
        if lossy {
            let later = (at + HANDOVER).as_secs_f64();
            writeln!(self.text, "{later},{values}{}", loss(false)).expect("a string");
        }
        self.handovers += u64::from(handover);
        if let Some(delay) = delay_ms {
            self.served += 1;
            (self.least, self.most) = (self.least.min(delay), self.most.max(delay));
        }
    }
}

impl Sky {
    fn new(passes: &Passes, elements: &[Elements], from: NaiveDateTime) -> Result<Self, LabError> {
        let satellite = |one: &Elements| {
            let constants = Constants::from_elements(one).map_err(|error| {
                LabError::Request(format!("passes: satellite {}: {error}", one.norad_id))
            })?;
            let offset = (from - one.datetime).as_seconds_f64() / 60.0;
            Ok(Satellite { constants, offset })
        };
        Ok(Self {
            satellites: elements.iter().map(satellite).collect::<Result<_, LabError>>()?,
            ends: [passes.user, passes.station].map(|place| place.position()),
            years: sgp4::julian_years_since_j2000(&from),
            least: passes.elevation.to_radians().sin(),
        })
    }

    /// Returns the satellite's position in km, Earth-fixed, `at` seconds from the beginning;
    /// `None` if it has decayed.
    fn position(&self, satellite: usize, at: f64) -> Option<[f64; 3]> {
        let satellite = &self.satellites[satellite];
        let time = MinutesSinceEpoch(satellite.offset + at / 60.0);
        let [x, y, z] = satellite.constants.propagate(time).ok()?.position;
        let years = self.years + at / (365.25 * 86_400.0);
        let (sin, cos) = sgp4::iau_epoch_to_sidereal_time(years).sin_cos();
        Some([x * cos + y * sin, y * cos - x * sin, z])
    }

    /// Returns the slant ranges in km and the sines of the elevation at both places.
    fn seen(&self, satellite: usize, at: f64) -> Option<[(f64, f64); 2]> {
        let position = self.position(satellite, at)?;
        Some(self.ends.map(|(place, zenith)| {
            let way: [f64; 3] = std::array::from_fn(|axis| position[axis] - place[axis]);
            let range = way.iter().map(|part| part * part).sum::<f64>().sqrt();
            let up: f64 = way.iter().zip(zenith).map(|(part, axis)| part * axis).sum();
            (range, up / range)
        }))
    }

    fn is_visible(&self, satellite: usize, at: f64) -> Option<f64> {
        let [(_, user), (_, station)] = self.seen(satellite, at)?;
        (user >= self.least && station >= self.least).then_some(user)
    }

    /// Returns the satellite that is highest at the user, of those visible at both times.
    fn highest(&self, at: f64, end: f64) -> Option<usize> {
        let lasting = |satellite: usize| {
            let sine = self.is_visible(satellite, at)?;
            self.is_visible(satellite, end).map(|_| (satellite, sine))
        };
        let all = (0..self.satellites.len()).filter_map(lasting);
        all.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(satellite, _)| satellite)
    }

    fn delay_ms(&self, satellite: usize, at: f64) -> Option<f64> {
        let [(user, _), (station, _)] = self.seen(satellite, at)?;
        Some((user + station) / LIGHT * 1e3)
    }
}

#[cfg(test)]
mod tests;
