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
