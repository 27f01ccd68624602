//! Plots as SVG, one style for all: horizontal bars that are labelled directly, so that they can be
//! read on a narrow screen, and lines. A plot is 420 units wide and as high as it needs; a reader
//! who shows it decides how large a unit is. Every mark of a data point has the class `datum`.

use maud::{Markup, html};

use super::report::{FigureReport, Group, Panel, Point, Quantity};

/// Colours that colour-blind readers tell apart (Okabe and Ito), the dark ones first.
pub(super) const COLOURS: [&str; 8] =
    ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#6B6B6B", "#B8A800"];
/// Shades for parts of stacked bars whose group is DRAM, persistent memory, or nothing.
const SHADES_DRAM: [&str; 3] = ["#0072B2", "#004B76", "#7FC4EA"];
const SHADES_PERSISTENT: [&str; 3] = ["#E69F00", "#A66A00", "#F6D58E"];

const WIDTH: f64 = 420.0;
/// Where names of bars end and bars begin: at least here, and no further than that.
const BARS_LEFT: (f64, f64) = (134.0, 200.0);
/// Room for a letter of a name.
const LETTER: f64 = 6.8;
/// Room for the number after the longest bar.
const BARS_RIGHT: f64 = 58.0;
const BAR_HEIGHT: f64 = 14.0;
const BAR_STEP: f64 = 18.0;
const GROUP_TITLE: f64 = 19.0;
const GROUP_GAP: f64 = 8.0;
const AXIS_HEIGHT: f64 = 38.0;

/// The plot of a panel.
pub(super) fn plot(figure: &FigureReport, panel: &Panel) -> Markup {
    match figure.plot {
        "lines" => lines(figure, panel),
        _ => bars(figure, panel),
    }
}

/// The colour of a part of a stacked bar.
pub(super) fn part_colour(parts: &[(String, String)], index: usize) -> &'static str {
    let group = &parts[index].1;
    let before = parts[..index].iter().filter(|(_, of)| of == group).count();
    match group.as_str() {
        "" => COLOURS[index % COLOURS.len()],
        "DRAM" => SHADES_DRAM[before % SHADES_DRAM.len()],
        _ => SHADES_PERSISTENT[before % SHADES_PERSISTENT.len()],
    }
}

/// A number with marks between thousands.
pub(super) fn number(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut marked = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            marked.push(',');
        }
        marked.push(digit);
    }
    let is_negative = value < 0.0 && text.contains(|c: char| c.is_ascii_digit() && c != '0');
    format!("{}{marked}{rest}", if is_negative { "-" } else { "" })
}

/// A length or place in the picture.
fn at(value: f64) -> String {
    format!("{value:.1}")
}

/// Round numbers from 0 to at least `most`, about four of them.
fn ticks(most: f64) -> Vec<f64> {
    let rough = if most > 0.0 { most / 4.0 } else { 0.25 };
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|by| by * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(power * 10.0);
    let count = (most / step).ceil().max(1.0) as usize;
    (0..=count).map(|index| index as f64 * step).collect()
}

/// A tick with as many digits as its step needs.
fn tick_text(tick: f64, step: f64) -> String {
    let digits = (0..4).find(|digits| {
        let scaled = step * 10f64.powi(*digits);
        (scaled - scaled.round()).abs() < 1e-6
    });
    number(tick, digits.unwrap_or(4) as usize)
}

/// From a number to a place on the horizontal axis of bars.
struct Scale {
    /// Where bars begin.
    left: f64,
    most: f64,
}

impl Scale {
    fn x(&self, value: f64) -> f64 {
        let room = WIDTH - self.left - BARS_RIGHT;
        self.left + room * (value / self.most).clamp(0.0, 1.0)
    }
}

/// Where a bar is, and what it is called.
struct Bar<'a> {
    y: f64,
    name: &'a str,
    colour: &'static str,
    group: &'a str,
    point: &'a Point,
}

fn bars(figure: &FigureReport, panel: &Panel) -> Markup {
    let most = panel
        .groups
        .iter()
        .flat_map(|group| &group.points)
        .filter_map(|point| point.value.map(|value| value.most))
        .fold(0.0, f64::max);
    let ticks = ticks(most);
    let Layout { bars, titles, bottom } = place(panel);
    let longest = bars.iter().map(|bar| bar.name.len()).max().unwrap_or(0) as f64;
    let left = (longest * LETTER + 12.0).clamp(BARS_LEFT.0, BARS_LEFT.1);
    let scale = Scale { left, most: ticks.last().copied().unwrap_or(1.0) };
    let height = bottom + AXIS_HEIGHT;
    let label = format!("{}: {}, {}", figure.title, panel.title, figure.quantity.title);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {}", at(height)))
            width=(WIDTH) height=(at(height)) role="img" aria-label=(label) {
            (axis(&ticks, &scale, bottom, &figure.quantity))
            @for (y, title) in &titles {
                text class="group" x="0" y=(at(*y)) { (title) }
            }
            @for bar in &bars { (draw_bar(figure, &scale, bar)) }
        }
    }
}

/// Where everything of a panel is.
struct Layout<'a> {
    bars: Vec<Bar<'a>>,
    /// Titles of groups, with their base lines.
    titles: Vec<(f64, &'a str)>,
    bottom: f64,
}

/// A group with one bar needs no title: the bar has it.
fn place(panel: &Panel) -> Layout<'_> {
    let (mut bars, mut titles, mut y) = (Vec::new(), Vec::new(), 4.0);
    for Group { title, points } in &panel.groups {
        let alone = points.len() == 1;
        if !alone {
            titles.push((y + 12.0, title.as_str()));
            y += GROUP_TITLE;
        }
        for (point, colour) in points.iter().zip(COLOURS.iter().cycle()) {
            let name = if alone { title } else { &point.series };
            bars.push(Bar { y, name, colour, group: title, point });
            y += BAR_STEP;
        }
        y += if alone { 0.0 } else { GROUP_GAP };
    }
    Layout { bars, titles, bottom: y }
}

fn axis(ticks: &[f64], scale: &Scale, bottom: f64, quantity: &Quantity) -> Markup {
    let step = ticks.get(1).copied().unwrap_or(1.0);
    html! {
        @for tick in ticks {
            @let x = at(scale.x(*tick));
            line class="grid" x1=(x) x2=(x) y1="2" y2=(at(bottom)) {}
            text class="tick" x=(x) y=(at(bottom + 13.0)) text-anchor="middle" {
                (tick_text(*tick, step))
            }
        }
        line class="axis" x1=(at(scale.left)) x2=(at(scale.left)) y1="2" y2=(at(bottom)) {}
        text class="unit" x=(at(f64::midpoint(scale.left, WIDTH - BARS_RIGHT)))
            y=(at(bottom + 30.0)) text-anchor="middle" { (axis_title(quantity)) }
    }
}

fn axis_title(quantity: &Quantity) -> String {
    format!("{}, {}", quantity.title, quantity.unit)
}

fn draw_bar(figure: &FigureReport, scale: &Scale, bar: &Bar<'_>) -> Markup {
    let middle = bar.y + BAR_HEIGHT / 2.0;
    let Some(value) = bar.point.value else {
        return html! {
            text class="name" x=(at(scale.left - 6.0)) y=(at(middle + 4.0)) text-anchor="end" {
                (bar.name)
            }
            text class="none" x=(at(scale.left + 6.0)) y=(at(middle + 4.0)) { "no result" }
        };
    };
    let quantity = &figure.quantity;
    let shown = number(value.median, quantity.digits);
    let says = format!("{}, {}: {shown} {}", bar.group, bar.point.series, quantity.unit);
    let end = scale.x(value.most.max(value.median));
    html! {
        g class="datum" {
            title { (says) }
            text class="name" x=(at(scale.left - 6.0)) y=(at(middle + 4.0)) text-anchor="end" {
                (bar.name)
            }
            @if figure.parts.is_empty() {
                rect x=(at(scale.left)) y=(at(bar.y)) height=(at(BAR_HEIGHT))
                    width=(at(scale.x(value.median) - scale.left)) fill=(bar.colour) {}
            } @else { (stack(figure, scale, bar)) }
            @if value.most > value.least { (whisker(scale, middle, value.least, value.most)) }
            text class="value" x=(at(end + 5.0)) y=(at(middle + 4.0)) { (shown) }
        }
    }
}

/// The parts of a bar, one after the other.
fn stack(figure: &FigureReport, scale: &Scale, bar: &Bar<'_>) -> Markup {
    let mut before = 0.0;
    let parts = bar.point.parts.iter().enumerate().map(|(index, part)| {
        let value = part.map_or(0.0, |part| part.median);
        let (from, to) = (scale.x(before), scale.x(before + value));
        before += value;
        (index, value, from, (to - from).max(0.0))
    });
    let (parts, unit) = (parts.collect::<Vec<_>>(), &figure.quantity.unit);
    html! {
        @for (index, value, from, width) in parts {
            rect class="part" x=(at(from)) y=(at(bar.y)) width=(at(width)) height=(at(BAR_HEIGHT))
                fill=(part_colour(&figure.parts, index)) {
                title {
                    (figure.parts[index].0) ": " (number(value, figure.quantity.digits)) " " (unit)
                }
            }
        }
    }
}

/// From the least to the most of all rounds.
fn whisker(scale: &Scale, y: f64, least: f64, most: f64) -> Markup {
    let (from, to) = (scale.x(least), scale.x(most));
    let cap = |x: f64| (at(x), at(y - 3.5), at(y + 3.5));
    html! {
        line class="range" x1=(at(from)) x2=(at(to)) y1=(at(y)) y2=(at(y)) {}
        @for (x, top, bottom) in [cap(from), cap(to)] {
            line class="range" x1=(x) x2=(x) y1=(top) y2=(bottom) {}
        }
    }
}

// --- Lines -----------------------------------------------------------------------------------

const LINES_HEIGHT: f64 = 290.0;
const LINES_LEFT: f64 = 46.0;
const LINES_RIGHT: f64 = 12.0;
const LINES_TOP: f64 = 24.0;
const LINES_BOTTOM: f64 = 42.0;

/// From numbers to a place; the horizontal axis is logarithmic.
struct Field {
    across: (f64, f64),
    most: f64,
}

impl Field {
    fn x(&self, value: f64) -> f64 {
        let (low, high) = (self.across.0.ln(), self.across.1.ln());
        let room = WIDTH - LINES_LEFT - LINES_RIGHT;
        LINES_LEFT + room * (value.ln() - low) / (high - low)
    }

    fn y(&self, value: f64) -> f64 {
        let room = LINES_HEIGHT - LINES_TOP - LINES_BOTTOM;
        LINES_HEIGHT - LINES_BOTTOM - room * (value / self.most).clamp(0.0, 1.0)
    }
}

/// A point that has both numbers.
struct Mark<'a> {
    x: f64,
    y: f64,
    point: &'a Point,
}

fn lines(figure: &FigureReport, panel: &Panel) -> Markup {
    let points = || panel.groups.iter().flat_map(|group| &group.points);
    let across = || points().filter_map(|point| Some(point.across?.median)).filter(|x| *x > 0.0);
    let most = points().filter_map(|p| Some(p.value?.most)).fold(0.0, f64::max);
    let ticks = ticks(most);
    let low = across().fold(f64::INFINITY, f64::min);
    let low = if low.is_finite() { low } else { 1.0 };
    let high = across().fold(low * 2.0, f64::max);
    let most = ticks.last().copied().unwrap_or(1.0);
    let field = Field { across: (low / 1.25, high * 1.25), most };
    let label = format!("{}: {}, {}", figure.title, panel.title, figure.quantity.title);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {LINES_HEIGHT}"))
            width=(WIDTH) height=(LINES_HEIGHT) role="img" aria-label=(label) {
            (field_axes(figure, &field, &ticks))
            @let says_which = !share_places(panel);
            @for (index, group) in panel.groups.iter().enumerate() {
                (line(figure, &field, group, index, says_which))
            }
        }
    }
}

fn field_axes(figure: &FigureReport, field: &Field, ticks: &[f64]) -> Markup {
    let (left, right) = (at(LINES_LEFT), at(WIDTH - LINES_RIGHT));
    let (top, bottom) = (at(LINES_TOP), LINES_HEIGHT - LINES_BOTTOM);
    let step = ticks.get(1).copied().unwrap_or(1.0);
    let across = figure.across.as_ref().map(axis_title).unwrap_or_default();
    html! {
        @for tick in ticks {
            @let y = field.y(*tick);
            line class="grid" x1=(left) x2=(right) y1=(at(y)) y2=(at(y)) {}
            text class="tick" x=(at(LINES_LEFT - 5.0)) y=(at(y + 4.0)) text-anchor="end" {
                (tick_text(*tick, step))
            }
        }
        @for tick in log_ticks(field.across.0, field.across.1) {
            @let x = at(field.x(tick));
            line class="grid" x1=(x) x2=(x) y1=(top) y2=(at(bottom)) {}
            text class="tick" x=(x) y=(at(bottom + 14.0)) text-anchor="middle" {
                (tick_text(tick, tick))
            }
        }
        line class="axis" x1=(left) x2=(right) y1=(at(bottom)) y2=(at(bottom)) {}
        text class="unit" x="0" y="11" { (axis_title(&figure.quantity)) }
        text class="unit" x=(right) y=(at(bottom + 32.0)) text-anchor="end" { (across) }
    }
}

/// 1, 2 and 5 times powers of ten between two numbers.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|by| by * 10f64.powi(power)));
    let within: Vec<f64> = all.filter(|tick| (low..=high).contains(tick)).collect();
    let decades = (high / low).log10();
    // With many decades there is room for powers of ten only.
    let only_tens =
        |tick: &f64| decades < 2.5 || (tick.log10() - tick.log10().round()).abs() < 1e-9;
    within.into_iter().filter(only_tens).collect()
}

/// Whether all lines have their points at the same places, which the axis names then.
fn share_places(panel: &Panel) -> bool {
    let places = |group: &Group| -> Vec<Option<f64>> {
        group.points.iter().map(|point| Some(point.across?.median)).collect()
    };
    panel.groups.windows(2).all(|two| places(&two[0]) == places(&two[1]))
}

fn line(
    figure: &FigureReport,
    field: &Field,
    group: &Group,
    nth: usize,
    says_which: bool,
) -> Markup {
    let colour = COLOURS[nth % COLOURS.len()];
    // Words of neighbouring lines stay out of each other's way.
    let words_y = if nth.is_multiple_of(2) { -8.0 } else { 17.0 };
    let placed: Vec<Mark<'_>> = group
        .points
        .iter()
        .filter_map(|point| {
            let (value, across) = (point.value?.median, point.across?.median);
            (across > 0.0).then(|| Mark { x: field.x(across), y: field.y(value), point })
        })
        .collect();
    let path: Vec<String> = placed.iter().map(|p| format!("{},{}", at(p.x), at(p.y))).collect();
    let quantity = &figure.quantity;
    html! {
        polyline class="line" points=(path.join(" ")) stroke=(colour) {}
        @for (index, p) in placed.iter().enumerate() {
            @let value = p.point.value.map_or(0.0, |value| value.median);
            g class="datum" {
                title {
                    (group.title) ", " (p.point.series) ": " (number(value, quantity.digits)) " "
                    (quantity.unit)
                }
                circle cx=(at(p.x)) cy=(at(p.y)) r="4" fill=(colour) {}
            }
            // Which point is which is said once for each line, at both of its ends.
            @if says_which && (index == 0 || index + 1 == placed.len()) {
                text class="tick" x=(at(p.x)) y=(at(p.y + words_y)) text-anchor="middle" {
                    (p.point.series)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_most() {
        assert_eq!(ticks(100.0), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(ticks(7.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        for most in [0.0, 1e-4, 0.3, 12_345.6, 9e9] {
            let ticks = ticks(most);
            assert!(ticks.len() >= 2 && ticks.len() <= 6, "{ticks:?}");
            assert!(*ticks.last().expect("some") >= most, "{ticks:?}");
        }
        assert_eq!(tick_text(2.5, 2.5), "2.5");
        assert_eq!(tick_text(5_000.0, 2_500.0), "5,000");
    }

    #[test]
    fn numbers_have_marks_between_thousands() {
        assert_eq!(number(1_234_567.89, 1), "1,234,567.9");
        assert_eq!((number(-1000.0, 0), number(-0.001, 1)), ("-1,000".into(), "0.0".into()));
        assert_eq!(number(12.0, 2), "12.00");
    }

    #[test]
    fn ticks_of_a_logarithmic_axis_lie_within_it() {
        assert_eq!(log_ticks(0.8, 30.0), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(log_ticks(0.05, 900.0), [0.1, 1.0, 10.0, 100.0]);
    }
}
