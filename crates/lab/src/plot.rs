//! Plots of downloads over time as SVG and PNG.

use crate::files::write_part;
use kuva::plot::legend::LegendPosition;
use kuva::plot::{LinePlot, LineStyle};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use std::path::{Path, PathBuf};

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Seconds since the request, and megabytes received until then.
    pub points: Vec<(f64, f64)>,
}

/// Octets received over time by each transport over one link: the slope is the goodput.
#[derive(Clone, Debug)]
pub struct DownloadPlot {
    /// Title, which names the link.
    pub title: String,
    /// One line per transport, in the order of the legend.
    pub series: Vec<Series>,
    /// Maximum goodput of the link in Mbit/s, drawn as a dashed line from the request on.
    pub bound_mbps: Option<f64>,
}

/// Errors of a plot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// There is no point to draw.
    #[error("there is nothing to plot")]
    Empty,
    /// The picture could not be drawn.
    #[error("the plot could not be drawn: {0}")]
    Draw(String),
    /// The file could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// Colours that readers with colour vision deficiencies can distinguish (Okabe and Ito 2008).
const COLOURS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
const BOUND_COLOUR: &str = "#666666";
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
/// Pixels of the PNG per unit of the SVG.
const PNG_SCALE: f32 = 2.0;

/// Draws `plot` as SVG and PNG.
///
/// # Errors
/// If there is nothing to draw, or a file cannot be written. Files are written completely or not at
/// all.
pub fn download(plot: &DownloadPlot, svg: &Path, png: &Path) -> Result<(), PlotError> {
    let (plots, layout) = compose(plot)?;
    let picture = kuva::render_to_svg(plots, layout);
    write(svg, picture.as_bytes())?;
    let (plots, layout) = compose(plot)?;
    let picture = kuva::render_to_png(plots, layout, PNG_SCALE)
        .map_err(|error| PlotError::Draw(error.to_string()))?;
    write(png, &picture)
}

fn compose(plot: &DownloadPlot) -> Result<(Vec<Plot>, Layout), PlotError> {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let last = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let highest = points().map(|(_, y)| *y).fold(0.0, f64::max);
    if last <= 0.0 {
        return Err(PlotError::Empty);
    }
    let mut plots = Vec::new();
    for (series, colour) in plot.series.iter().zip(COLOURS.iter().cycle()) {
        let line = LinePlot::new()
            .with_data(series.points.iter().copied())
            .with_color(*colour)
            .with_stroke_width(2.0)
            .with_legend(series.name.as_str());
        plots.push(Plot::Line(line));
    }
    if let Some(bound) = plot.bound_mbps {
        let line = LinePlot::new()
            .with_data([(0.0, 0.0), bound_end(bound / 8.0, last, highest)])
            .with_color(BOUND_COLOUR)
            .with_stroke_width(1.5)
            .with_line_style(LineStyle::Dashed)
            .with_legend("what the link allows");
        plots.push(Plot::Line(line));
    }
    let layout = Layout::auto_from_plots(&plots)
        .with_title(plot.title.as_str())
        .with_x_label("time since the request (s)")
        .with_y_label("received (MB)")
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_x_axis_min(0.0)
        .with_x_axis_max(last)
        .with_y_axis_min(0.0)
        .with_y_axis_max(if highest > 0.0 { highest * 1.08 } else { 1.0 })
        .with_legend_position(LegendPosition::OutsideRightTop);
    Ok((plots, layout))
}

/// Returns where a line of `rate` (per second) from the origin leaves the plot.
fn bound_end(rate: f64, last: f64, highest: f64) -> (f64, f64) {
    if rate * last <= highest { (last, rate * last) } else { (highest / rate, highest) }
}

fn write(path: &Path, content: &[u8]) -> Result<(), PlotError> {
    let failed = |source| PlotError::Write { path: path.to_path_buf(), source };
    write_part(path, content).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> DownloadPlot {
        let line = |name: &str, level: f64| Series {
            name: name.into(),
            points: (0..=60).map(|t| (f64::from(t), f64::from(t) * level / 8.0)).collect(),
        };
        DownloadPlot {
            title: "geo: 10 Mbit/s, 600 ms, 1 % loss".into(),
            series: vec![line("cubic", 0.4), line("bbr", 7.5), line("bentpipe", 9.3)],
            bound_mbps: Some(9.5),
        }
    }

    #[test]
    fn a_plot_has_labels_for_axes_lines_and_bound() {
        let folder = std::env::temp_dir().join(format!("bentpipe-plot-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (svg, png) = (folder.join("goodput.svg"), folder.join("goodput.png"));
        download(&sample(), &svg, &png).unwrap();
        let text = std::fs::read_to_string(&svg).unwrap();
        for word in ["received (MB)", "time since the request (s)", "cubic", "allows"] {
            assert!(text.contains(word), "the SVG lacks {word:?}");
        }
        let picture = std::fs::read(&png).unwrap();
        assert_eq!(&picture[1..4], b"PNG");
        // The width stands in bytes 16 to 19 of a PNG file.
        let width = u32::from_be_bytes(picture[16..20].try_into().unwrap());
        assert!(f64::from(width) >= WIDTH, "{width} pixels wide");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_plot_without_points_is_an_error_and_writes_no_file() {
        let empty = DownloadPlot { title: String::new(), series: Vec::new(), bound_mbps: None };
        let path = std::env::temp_dir().join("bentpipe-plot-empty.svg");
        assert!(matches!(download(&empty, &path, &path), Err(PlotError::Empty)));
        assert!(!path.exists());
    }

    #[test]
    fn a_missing_folder_is_named_in_the_error() {
        let path = Path::new("/nonexistent/goodput.svg");
        let error = download(&sample(), path, path).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/goodput.svg: "), "{error}");
    }
}
