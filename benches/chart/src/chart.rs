//! The chart: one bar for each way of evaluating, in one group for each application.

use std::fmt::Write;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use plotters::coord::Shift;
use plotters::coord::combinators::LogCoord;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::{Results, Ways};

/// Pixels, as everything that is an integer here.
const SIZE: (u32, u32) = (760, 420);
/// From the left edge to the text, and to the bars.
const LEFT: (i32, i32) = (24, 190);
/// Above the bars, and below their axis.
const ABOVE: i32 = 62;
const BELOW: i32 = 34;
/// Rows of a group: its heading, its bars, and some space.
const ROWS: f64 = 5.4;
/// Half of the part of its row's height that a bar fills.
const HALF: f64 = 0.36;

const FONT: &str = "system-ui, sans-serif";
const BACKGROUND: RGBColor = RGBColor(255, 255, 255);
const TEXT: RGBColor = RGBColor(31, 35, 40);
const MUTED: RGBColor = RGBColor(89, 99, 110);
const GRID: RGBColor = RGBColor(209, 217, 224);

/// The colours above and what takes their place for a reader who prefers dark pages. The bars'
/// are readable on both.
const DARK: [(RGBColor, RGBColor); 4] = [
    (BACKGROUND, RGBColor(13, 17, 23)),
    (TEXT, RGBColor(240, 246, 252)),
    (MUTED, RGBColor(145, 152, 161)),
    (GRID, RGBColor(48, 54, 61)),
];

/// A label, a colour, and the figure.
type Bar = (&'static str, RGBColor, fn(&Ways) -> f64);

const BARS: [Bar; 4] = [
    ("plain PHP (proc_open)", RGBColor(140, 149, 159), |w| {
        w.plain
    }),
    ("cold", RGBColor(84, 174, 255), |w| w.cold),
    ("first call", RGBColor(9, 105, 218), |w| w.first),
    ("warm", RGBColor(45, 164, 78), |w| w.warm),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Milliseconds from left to right, rows from top to bottom.
type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, RangedCoordf64>>;

/// The chart as SVG, with its text as text.
///
/// # Errors
///
/// When a figure is no positive number.
pub fn draw(results: &Results) -> Result<String> {
    let groups = [
        ("examples/shop", &results.evaluation_ms.shop),
        (
            "a larger application: its boot loads 800 classes and takes 150 ms",
            &results.evaluation_ms.larger,
        ),
    ];
    let figures: Vec<f64> = groups
        .iter()
        .flat_map(|(_, ways)| BARS.map(|(_, _, figure)| figure(ways)))
        .collect();
    let range = decades(&figures)?;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&BACKGROUND)?;
        captions(&area, results)?;
        let mut plot: Plot = ChartBuilder::on(&area)
            .margin_top(ABOVE)
            .margin_bottom(BELOW)
            .margin_left(LEFT.1)
            .margin_right(80)
            .x_label_area_size(42)
            .build_cartesian_2d(range.clone().log_scale(), (ROWS * 2.0)..0.0)?;
        plot.configure_mesh()
            .disable_y_axis()
            .disable_y_mesh()
            .x_labels(5)
            .x_label_formatter(&|ms| format!("{ms} ms"))
            .x_desc("median, logarithmic scale")
            .x_label_style(font(12, MUTED))
            .axis_desc_style(font(12, MUTED))
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (top, (heading, ways)) in [0.0, ROWS].into_iter().zip(groups) {
            let (_, y) = plot.backend_coord(&(range.start, top + 0.5));
            let style = font(14, TEXT).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(heading, (LEFT.0, y), style))?;
            bars(&area, &mut plot, range.start, top + 1.5, ways)?;
        }
        area.present()?;
    }
    dress(&svg, &groups)
}

/// What it is, above, and where the figures are from, below.
fn captions(area: &Area, results: &Results) -> Result<()> {
    let title = "One evaluation of `return 1 + 1;`, boot included where there is one";
    area.draw(&Text::new(title, (LEFT.0, 18), font(17, TEXT)))?;
    let source = format!(
        "{} · PHP {} · Linux {} · {} · {} cores · all guards on, but for plain PHP, which has none",
        results.day(),
        results.php,
        results.kernel,
        results.machine,
        results.cores,
    );
    let bottom = SIZE.1.cast_signed() - BELOW + 8;
    area.draw(&Text::new(source, (LEFT.0, bottom), font(11, MUTED)))?;
    Ok(())
}

/// One application's bars, the first of them in the middle of the row at `row`.
fn bars(area: &Area, plot: &mut Plot, from_ms: f64, row: f64, ways: &Ways) -> Result<()> {
    for (at, (label, colour, figure)) in (0_u8..).zip(BARS) {
        let (ms, middle) = (figure(ways), row + f64::from(at));
        let corners = [(from_ms, middle - HALF), (ms, middle + HALF)];
        plot.draw_series([Rectangle::new(corners, colour.filled())])?;

        let (left, y) = plot.backend_coord(&(from_ms, middle));
        let (right, _) = plot.backend_coord(&(ms, middle));
        let before = font(13, TEXT).pos(Pos::new(HPos::Right, VPos::Center));
        let after = font(13, TEXT).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(label, (left - 8, y), before))?;
        area.draw(&Text::new(in_words(ms), (right + 6, y), after))?;
    }
    Ok(())
}

/// The powers of ten around the figures, so that the shortest bar is one, too.
fn decades(figures: &[f64]) -> Result<Range<f64>> {
    ensure!(
        figures.iter().all(|ms| ms.is_finite() && *ms > 0.0),
        "not all figures are positive: {figures:?}"
    );
    let shortest = figures.iter().copied().fold(f64::MAX, f64::min);
    let longest = figures.iter().copied().fold(f64::MIN, f64::max);
    Ok(10_f64.powf((shortest / 2.0).log10().floor())..10_f64.powf(longest.log10().ceil()))
}

/// Three digits: `0.87 ms`, `20.4 ms`, `176 ms`.
fn in_words(ms: f64) -> String {
    let digits = match ms {
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{ms:.digits$} ms")
}

fn font(pixels: i32, colour: RGBColor) -> TextStyle<'static> {
    // The SVG backend writes a size as that of the em square, and takes it for 1.24 times as much.
    (FONT, f64::from(pixels) * 1.24).into_font().color(&colour)
}

/// Adds what the library does not draw: the colours for a dark page, and the figures for who hears
/// the page rather than sees it.
fn dress(svg: &str, groups: &[(&str, &Ways)]) -> Result<String> {
    let mut title = String::from("Median time of one evaluation.");
    for (heading, ways) in groups {
        write!(title, " On {heading}:")?;
        for (at, (label, _, figure)) in BARS.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(title, "{comma} {label} {}", in_words(figure(ways)))?;
        }
        title.push('.');
    }
    let mut rules = String::new();
    for (light, dark) in DARK {
        let (light, dark) = (hex(light), hex(dark));
        write!(
            rules,
            "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}"
        )?;
    }
    let (opening, rest) = svg.split_once(">\n").context("no element in the drawing")?;
    Ok(format!(
        "{opening}>\n<title>{title}</title>\n\
         <style>@media (prefers-color-scheme:dark){{{rules}}}</style>\n{rest}"
    ))
}

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}
