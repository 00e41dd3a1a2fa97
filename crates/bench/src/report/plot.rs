//! The figures and Doris's as horizontal bars, in one SVG file.

use super::{cannot_write, table::grouped};
use crate::error::BenchError;
use crate::suite::CellResult;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

const OURS: RGBColor = RGBColor(0x1f, 0x6f, 0xb4);
const PUBLISHED: RGBColor = RGBColor(0xb0, 0xb0, 0xb0);
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const WIDTH: i32 = 1000;
const LABEL_WIDTH: i32 = 330;
const BAR_WIDTH_MAX: f64 = 540.0;
const CELL_HEIGHT: i32 = 40;
const TOP: i32 = 54;

/// Values over the time of a run, in seconds.
#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Draws curves below one another over the same time, each from 0 to its greatest value.
///
/// # Errors
/// The file cannot be written.
pub fn over_time(path: &Path, curves: &[Curve]) -> Result<(), BenchError> {
    draw_over_time(path, curves).map_err(|error| cannot_write(path, error))
}

fn draw_over_time(path: &Path, curves: &[Curve]) -> Result<(), Box<dyn std::error::Error>> {
    const HEIGHT: u32 = 180;
    let area = SVGBackend::new(path, (WIDTH as u32, HEIGHT * curves.len().max(1) as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let end = points().map(|(at, _)| *at).fold(1.0, f64::max);
    for (panel, curve) in area.split_evenly((curves.len().max(1), 1)).iter().zip(curves) {
        let most = curve.points.iter().map(|(_, value)| *value).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(panel)
            .caption(&curve.name, ("sans-serif", 15).into_font().color(&INK))
            .margin(8)
            .margin_right(24)
            .x_label_area_size(26)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..end, 0.0..most * 1.1)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .x_label_formatter(&|at| format!("{at:.0} s"))
            .y_label_formatter(&|value| grouped(*value))
            .y_labels(5)
            .draw()?;
        chart.draw_series(LineSeries::new(curve.points.iter().copied(), OURS.stroke_width(2)))?;
        // A curve of few points shows them.
        if curve.points.len() < 20 {
            chart.draw_series(curve.points.iter().map(|point| Circle::new(*point, 3, OURS.filled())))?;
        }
    }
    area.present()?;
    Ok(())
}

/// Draws the medians.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, results: &[CellResult]) -> Result<(), BenchError> {
    draw(path, results).map_err(|error| cannot_write(path, error))
}

fn draw(path: &Path, results: &[CellResult]) -> Result<(), Box<dyn std::error::Error>> {
    let height = TOP + CELL_HEIGHT * results.len() as i32 + 12;
    let area = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let text = |size: i32| ("sans-serif", size).into_font().color(&INK);
    let centred = |size, side| text(size).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new("Rows per second", (12, 10), text(18)))?;
    for (name, colour, x) in
        [("Tributary, 2 cores", OURS, 330), ("Doris, published, 16-core cluster", PUBLISHED, 520)]
    {
        area.draw(&Rectangle::new([(x, 14), (x + 12, 26)], colour.filled()))?;
        area.draw(&Text::new(name, (x + 18, 20), centred(13, HPos::Left)))?;
    }
    let most = results
        .iter()
        .flat_map(|result| [result.median().rows_per_second, result.published_rows_per_second.unwrap_or(0.0)])
        .fold(1.0, f64::max);
    for (number, result) in results.iter().enumerate() {
        let top = TOP + CELL_HEIGHT * number as i32;
        area.draw(&Text::new(result.name.clone(), (LABEL_WIDTH - 10, top + 15), centred(13, HPos::Right)))?;
        let bars =
            [(Some(result.median().rows_per_second), OURS), (result.published_rows_per_second, PUBLISHED)];
        for (bar, (rows, colour)) in bars.into_iter().enumerate() {
            let Some(rows) = rows else { continue };
            let y = top + 15 * bar as i32;
            let end = LABEL_WIDTH + ((rows / most * BAR_WIDTH_MAX) as i32).max(1);
            area.draw(&Rectangle::new([(LABEL_WIDTH, y), (end, y + 13)], colour.filled()))?;
            area.draw(&Text::new(grouped(rows), (end + 6, y + 7), centred(12, HPos::Left)))?;
        }
    }
    area.present()?;
    Ok(())
}
