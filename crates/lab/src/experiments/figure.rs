//! Figures: lines with error bars, as SVG, PNG and CSV.

use super::statistics::Summary;
use crate::files::csv;
use crate::plot::PlotError;
use kuva::plot::legend::LegendPosition;
use kuva::plot::{LinePlot, LineStyle, ScatterPlot};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A figure as in the publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// File name without extension.
    pub id: String,
    /// Title above the figure.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
    /// Caption below the figure; may be empty.
    pub note: String,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Whether it is logarithmic.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: true }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Abscissa, mean and half-width of the 95 % confidence interval, which is zero if there is
    /// none.
    pub points: Vec<(f64, f64, f64)>,
    /// Whether the line is dashed, as published values and bounds are.
    pub dashed: bool,
    /// Whether points are joined by a line.
    pub joined: bool,
}

impl Series {
    /// Returns a line through summaries, with error bars.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, Summary)>) -> Self {
        let half = |summary: &Summary| if summary.half.is_finite() { summary.half } else { 0.0 };
        let points = points.into_iter().map(|(x, y)| (x, y.mean, half(&y))).collect();
        Self { name: name.into(), points, dashed: false, joined: true }
    }

    /// Returns a scatter plot.
    pub fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { dashed: false, joined: false, ..Self::dashed(name, points) }
    }

    /// Returns a line without error bars.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { dashed: false, ..Self::dashed(name, points) }
    }

    /// Returns a dashed line without error bars.
    pub fn dashed(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| (x, y, 0.0)).collect();
        Self { name: name.into(), points, dashed: true, joined: true }
    }
}

/// Colours that readers with colour vision deficiencies can distinguish (Okabe and Ito 2008).
const COLOURS: [&str; 7] =
    ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];
/// Prefix of the identifiers that the plotting library gives to parts of a picture.
const CLIP: &str = "kuva-clip-";
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
/// Leaves room for a title of `TITLE_WRAP` characters above the plot, beside the legend.
const TITLE_SIZE: u32 = 14;
const TITLE_WRAP: usize = 72;
/// Fraction of an axis that is left free at either end, so that markers there are not clipped.
const BESIDE: f64 = 0.02;
/// Lines of more points are drawn without markers.
const DOTTED: usize = 40;
/// Pixels of the PNG per unit of the SVG.
const PNG_SCALE: f32 = 2.0;

impl Figure {
    /// Renders the figure as SVG.
    ///
    /// # Errors
    /// If there is no point to draw.
    pub fn svg(&self) -> Result<String, PlotError> {
        let (plots, layout) = self.compose()?;
        Ok(self.scalable(&kuva::render_to_svg(plots, layout)))
    }

    /// Renders the figure as PNG.
    ///
    /// # Errors
    /// If there is no point to draw, or rendering fails.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let (plots, layout) = self.compose()?;
        kuva::render_to_png(plots, layout, PNG_SCALE)
            .map_err(|error| PlotError::Draw(error.to_string()))
    }

    /// Makes the picture scalable, and makes its identifiers unique to the figure: the library
    /// numbers them per process, and pictures of one page must not share identifiers.
    fn scalable(&self, svg: &str) -> String {
        let scaled = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" ");
        let mut ready = String::with_capacity(svg.len() + 64);
        let mut names: Vec<&str> = Vec::new();
        let svg = svg.replacen("<svg ", &scaled, 1);
        for (index, part) in svg.split(CLIP).enumerate() {
            if index > 0 {
                let digits = part.bytes().take_while(u8::is_ascii_digit).count();
                let name = &part[..digits];
                let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
                ready += &format!("{}-clip-{place}{}", self.id, &part[digits..]);
                if place == names.len() {
                    names.push(name);
                }
            } else {
                ready += part;
            }
        }
        ready
    }

    /// Returns the figure's data as CSV: series, x, mean, half-width of the 95 % interval.
    pub fn csv(&self) -> String {
        let head = ["series", &self.x.label, &self.y.label, "half of 95 % interval"];
        let rows = self.series.iter().flat_map(|series| {
            series.points.iter().map(|(x, y, half)| {
                vec![series.name.clone(), x.to_string(), y.to_string(), half.to_string()]
            })
        });
        csv(&head.map(str::to_owned), rows)
    }

    /// Returns the points that the axes can show: on logarithmic axes only positive values.
    fn visible<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
        series
            .points
            .iter()
            .copied()
            .filter(|(x, y, _)| (!self.x.log || *x > 0.0) && (!self.y.log || *y > 0.0))
    }

    /// Returns the length of the error bar below `y`, which stays above zero on a logarithmic axis.
    fn whisker(&self, y: f64, half: f64) -> f64 {
        if self.y.log { half.min(y * 0.9) } else { half }
    }

    fn compose(&self) -> Result<(Vec<Plot>, Layout), PlotError> {
        let mut plots = Vec::new();
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let points: Vec<(f64, f64, f64)> = self.visible(series).collect();
            if points.is_empty() {
                continue;
            }
            if !series.joined {
                let dots = ScatterPlot::new()
                    .with_data(points.iter().map(|(x, y, _)| (*x, *y)))
                    .with_color(*colour)
                    .with_size(4.5)
                    .with_legend(series.name.as_str());
                plots.push(Plot::Scatter(dots));
                continue;
            }
            let style = if series.dashed { LineStyle::Dashed } else { LineStyle::Solid };
            let mut line = LinePlot::new()
                .with_data(points.iter().map(|(x, y, _)| (*x, *y)))
                .with_color(*colour)
                .with_stroke_width(2.0)
                .with_line_style(style)
                .with_legend(series.name.as_str());
            if points.iter().any(|(_, _, half)| *half > 0.0) {
                line = line.with_y_err_asymmetric(
                    points.iter().map(|(_, y, half)| (self.whisker(*y, *half), *half)),
                );
            }
            plots.push(Plot::Line(line));
            if !series.dashed && points.len() <= DOTTED {
                let dots = ScatterPlot::new()
                    .with_data(points.iter().map(|(x, y, _)| (*x, *y)))
                    .with_color(*colour)
                    .with_size(3.5);
                plots.push(Plot::Scatter(dots));
            }
        }
        if plots.is_empty() {
            return Err(PlotError::Empty);
        }
        let layout = self.layout(&plots);
        Ok((plots, layout))
    }

    fn layout(&self, plots: &[Plot]) -> Layout {
        let mut layout = Layout::auto_from_plots(plots)
            .with_title(self.title.as_str())
            .with_title_size(TITLE_SIZE)
            .with_title_wrap(TITLE_WRAP)
            .with_x_label(self.x.label.as_str())
            .with_y_label(self.y.label.as_str())
            .with_width(WIDTH)
            .with_height(HEIGHT)
            .with_legend_position(LegendPosition::OutsideRightTop);
        let all = || self.series.iter().flat_map(|series| self.visible(series));
        let fold = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
        };
        let (left, right) = fold(&mut all().map(|(x, _, _)| x));
        let beside = BESIDE * (right - left);
        // The library's automatic axis range ignores error bars.
        let (low, _) = fold(&mut all().map(|(_, y, half)| y - self.whisker(y, half)));
        let (_, high) = fold(&mut all().map(|(_, y, half)| y + half));
        if self.x.log {
            let (left, right) = log_ends(left, right);
            layout = layout.with_log_x().with_x_tick_format(log_ticks());
            layout = layout.with_x_axis_min(left).with_x_axis_max(right);
        } else if right > left {
            layout = layout.with_x_axis_min(left - beside).with_x_axis_max(right + beside);
        }
        if self.y.log {
            let (low, high) = log_ends(low, high);
            layout = layout.with_log_y().with_y_tick_format(log_ticks());
            layout = layout.with_y_axis_min(low).with_y_axis_max(high);
        } else {
            let span = (high - low.min(0.0)).max(f64::MIN_POSITIVE);
            // The axis of a non-negative quantity begins at zero even if error bars extend below.
            let negative = all().any(|(_, y, _)| y < 0.0);
            let bottom = if negative { low - 0.05 * span } else { 0.0 };
            layout = layout.with_y_axis_min(bottom).with_y_axis_max(high + 0.06 * span);
        }
        layout
    }
}

/// Returns the ends of a logarithmic axis: the steps of 1, 2 and 5 that enclose the values, with
/// a margin.
fn log_ends(low: f64, high: f64) -> (f64, f64) {
    let steps = |value: f64| {
        let decade = value.log10().floor();
        [1.0, 2.0, 5.0, 10.0].map(|step| step * 10_f64.powf(decade))
    };
    let (below, above) = (steps(low), steps(high));
    let low = below.into_iter().rfind(|step| *step <= low * (1.0 + 1e-9)).unwrap_or(low);
    let high = above.into_iter().find(|step| *step >= high * (1.0 - 1e-9)).unwrap_or(high);
    if high <= low {
        return (low / 2.0, high * 2.0);
    }
    let beside = (high / low).powf(BESIDE);
    (low / beside, high * beside)
}

/// Labels of a logarithmic axis; the library's own mix two formats.
fn log_ticks() -> TickFormat {
    TickFormat::Custom(Arc::new(log_tick))
}

/// Formats a value as a decimal between 0.001 and 10⁶, otherwise as a power.
fn log_tick(value: f64) -> String {
    if !(0.999e-3..1e6).contains(&value) {
        return format!("{value:.0e}");
    }
    let decimal = format!("{value:.4}");
    decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(log: bool) -> Figure {
        let y = if log { Axis::log("overhead (%)") } else { Axis::linear("overhead (%)") };
        let point = |x: f64, mean: f64| (x, Summary { n: 20, mean, deviation: 1.0, half: 0.4 });
        Figure {
            id: "figure-7".into(),
            title: "Overhead".into(),
            x: Axis::linear("dropped in bad states (%)"),
            y,
            series: vec![
                Series::new("XSTP-ON", [point(0.0, 3.0), point(50.0, 9.0)]),
                Series::dashed("bound", [(0.0, 2.0), (50.0, 2.0)]),
            ],
            note: String::new(),
        }
    }

    #[test]
    fn svg_and_csv_have_the_axes_names_and_numbers() {
        let text = figure(false).svg().unwrap();
        for word in ["Overhead", "overhead (%)", "XSTP-ON", "bound"] {
            assert!(text.contains(word), "the SVG lacks {word:?}");
        }
        assert!(text.starts_with("<svg viewBox="), "it can be scaled");
        assert!(text.contains("figure-7-clip-0") && !text.contains("kuva-clip"));
        assert_eq!(text, figure(false).svg().unwrap(), "the same each time");
        assert_eq!(&figure(true).png().unwrap()[1..4], b"PNG");
        let csv = figure(false).csv();
        assert!(csv.contains("XSTP-ON,50,9,0.4\n"), "{csv}");
    }

    #[test]
    fn labels_of_a_logarithmic_axis_are_short() {
        let ticks = [1e-9, 5e-9, 1e-3, 0.05, 0.1, 0.5, 1.0, 20.0, 1e5, 1e6].map(log_tick);
        let expected = ["1e-9", "5e-9", "0.001", "0.05", "0.1", "0.5", "1", "20", "100000", "1e6"];
        assert_eq!(ticks, expected);
    }

    #[test]
    fn a_logarithmic_axis_encloses_its_values() {
        let near = |(low, high): (f64, f64), ends: [f64; 2]| {
            let beside = (ends[1] / ends[0]).powf(0.02);
            (low * beside / ends[0] - 1.0).abs() < 1e-9
                && (high / beside / ends[1] - 1.0).abs() < 1e-9
        };
        assert!(near(log_ends(0.5, 4.0), [0.5, 5.0]));
        assert!(near(log_ends(1e-8, 1e-5), [1e-8, 1e-5]));
        assert!(near(log_ends(0.71, 0.93), [0.5, 1.0]));
        assert!(near(log_ends(130.0, 9_990.0), [100.0, 10_000.0]));
        assert_eq!(log_ends(1.0, 1.0), (0.5, 2.0), "one value has an axis, too");
        let text = figure(true).svg().unwrap();
        assert!(text.contains(">2</text>") && text.contains(">10</text>"), "{text}");
        assert!(!text.contains(">100</text>"), "nothing is there");
    }

    #[test]
    fn a_figure_without_points_is_an_error() {
        let empty = Figure { series: Vec::new(), ..figure(false) };
        assert!(matches!(empty.svg(), Err(PlotError::Empty)));
    }
}
