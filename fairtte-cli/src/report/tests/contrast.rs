//! Contrast of every colour of the pages, in light and dark: text at least 4.5 to 1, graphics at least 3 to 1 (WCAG 2.2, success
//! criteria 1.4.3 and 1.4.11). Lines that only decorate (grid lines, rules between rows) have no limit.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use super::super::test_reports::report;
use super::super::{EpochPoint, render_page};
use super::page;

const STYLE: &str = include_str!("../style.css");
const TEXT: f64 = 4.5;
const GRAPHIC: f64 = 3.0;
/// Names of colours that only decorate, and of backgrounds.
const DECORATION: [&str; 2] = ["grid", "rule"];
const BACKGROUNDS: [&str; 2] = ["page", "panel"];
/// Every template with colours of its own.
const TEMPLATES: [(&str, &str); 6] = [
    ("style.css", STYLE),
    ("page.html", include_str!("../page.html")),
    ("choice.html", include_str!("../choice.html")),
    ("study.html", include_str!("../study.html")),
    ("explain.html", include_str!("../explain.html")),
    ("samples.html", include_str!("../samples.html")),
];

type Colour = [f64; 3];

fn colour(hex: &str) -> Colour {
    let digits = hex.trim_start_matches('#');
    let digits = if digits.len() == 3 { digits.chars().flat_map(|c| [c, c]).collect() } else { digits.to_owned() };
    [0, 2, 4].map(|k| f64::from(u8::from_str_radix(&digits[k..k + 2], 16).unwrap()) / 255.0)
}

/// Relative luminance (WCAG 2.2, definition with the threshold 0.04045 of IEC 61966-2-1).
fn luminance(colour: Colour) -> f64 {
    let linear = |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
    0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
}

fn contrast(one: Colour, other: Colour) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// `colour` of this opacity over `below`.
fn over(colour: Colour, opacity: f64, below: Colour) -> Colour {
    [0, 1, 2].map(|k| colour[k] * opacity + below[k] * (1.0 - opacity))
}

/// One scheme: the named colours, and by colour of a figure the one that the style sheet shows.
struct Scheme {
    named: BTreeMap<String, Colour>,
    shown: BTreeMap<String, Colour>,
}

impl Scheme {
    fn light() -> Self {
        let (before, _) = STYLE.split_once("@media screen").unwrap();
        Self { named: named(before), shown: replaced(&STYLE[STYLE.find("\n}\nsvg").unwrap()..], &named(before)) }
    }

    fn dark() -> Self {
        let (_, after) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
        let (own, rest) = after.split_once("\n}\n").unwrap();
        let named = named(own);
        let mut shown = replaced(own, &named);
        shown.extend(replaced(rest, &named));
        Self { named, shown }
    }

    fn of_figure(&self, hex: &str) -> Colour {
        self.shown.get(hex).copied().unwrap_or_else(|| colour(hex))
    }

    fn backgrounds(&self) -> [Colour; 2] {
        BACKGROUNDS.map(|name| self.named[name])
    }
}

/// The `--name: #colour` of a style sheet.
fn named(css: &str) -> BTreeMap<String, Colour> {
    let of = css.split("--").skip(1).filter_map(|rest| rest.split_once(": #"));
    let of = of.filter(|(name, _)| name.chars().all(char::is_alphanumeric));
    of.map(|(name, rest)| (name.to_owned(), colour(&rest[..6]))).collect()
}

/// The `svg [fill="#OLD"] { fill: NEW; }` of a style sheet, and the same of strokes, which must agree.
fn replaced(css: &str, named: &BTreeMap<String, Colour>) -> BTreeMap<String, Colour> {
    let mut found: BTreeMap<String, Colour> = BTreeMap::new();
    for kind in ["fill", "stroke"] {
        for rest in css.split(&format!("svg [{kind}=\"")).skip(1) {
            let (old, rest) = rest.split_once('"').unwrap();
            let new = rest.split_once(&format!("{kind}: ")).unwrap().1.split(';').next().unwrap();
            let new = match new.strip_prefix("var(--") {
                Some(name) => named[name.trim_end_matches(')')],
                None => colour(new),
            };
            let before = found.insert(old.to_owned(), new);
            assert!(before.is_none_or(|before| contrast(before, new) <= 1.0), "{old} as {kind}");
        }
    }
    found
}

fn schemes() -> [(&'static str, Scheme); 2] {
    [("light", Scheme::light()), ("dark", Scheme::dark())]
}

fn require(what: &str, found: f64, least: f64) {
    assert!(found >= least, "{what}: contrast {found:.2}, expected at least {least}");
}

/// The declarations of a style sheet or of the one at the head of a template, `property: value`.
fn declarations(template: &str) -> impl Iterator<Item = (&str, &str)> {
    let of =
        template.split("</style>").next().unwrap().split(['{', ';', '}', '"']).filter_map(|text| text.split_once(':'));
    of.map(|(property, value)| (property.trim(), value.trim()))
}

#[test]
fn contrast_is_that_of_the_published_examples() {
    // https://www.w3.org/WAI/WCAG22/Techniques/general/G18: black on white has 21; #767676 is the lightest grey with 4.5.
    assert!((contrast(colour("#000"), colour("#fff")) - 21.0).abs() < 1e-9);
    assert!((contrast(colour("#767676"), colour("#ffffff")) - 4.54).abs() < 0.005);
    assert!(contrast(colour("#777777"), colour("#ffffff")) < 4.5);
    for (name, scheme) in schemes() {
        assert_eq!(scheme.named.len(), 9, "{name}: {:?}", scheme.named.keys());
    }
    assert_eq!((schemes()[0].1.shown.len(), schemes()[1].1.shown.len()), (4, 7));
}

#[test]
fn text_and_graphics_of_the_style_sheets_can_be_seen_on_both_backgrounds() {
    let (mut texts, mut graphics) = (BTreeSet::new(), BTreeSet::new());
    for (property, value) in TEMPLATES.iter().flat_map(|(_, text)| declarations(text)) {
        // `--n` and `--k` are numbers, `--shade` is made of the others.
        let names = value.split("var(--").skip(1).map(|rest| rest.split(')').next().unwrap());
        for name in names.filter(|name| !["n", "k", "shade"].contains(name)) {
            match property {
                "color" => texts.insert(name),
                "fill" | "stroke" => false,
                _ => graphics.insert(name),
            };
        }
    }
    assert_eq!(texts.iter().copied().collect::<Vec<_>>(), ["accent", "ink", "muted", "warn"]);
    for (scheme_name, scheme) in schemes() {
        for background in scheme.backgrounds() {
            for name in &texts {
                require(&format!("{scheme_name} text {name}"), contrast(scheme.named[*name], background), TEXT);
            }
            let seen = graphics.iter().filter(|name| !DECORATION.contains(name) && !BACKGROUNDS.contains(name));
            for name in seen {
                require(&format!("{scheme_name} graphic {name}"), contrast(scheme.named[*name], background), GRAPHIC);
            }
        }
    }
}

/// Colours that templates write out: marks on the page, or shades below text.
#[test]
fn colours_that_templates_write_out_can_be_seen_and_text_on_shades_can_be_read() {
    for (template, text) in TEMPLATES {
        for (property, value) in declarations(text) {
            // Behind images and in the legend of maps, whose ends are seen; the custom properties are tested above.
            let is_behind_image = value == "#000" || value.contains("linear-gradient(90deg");
            if property.starts_with("--") || ["fill", "stroke"].contains(&property) || is_behind_image {
                continue;
            }
            for (scheme_name, scheme) in schemes() {
                let [page, _] = scheme.backgrounds();
                for hex in value.split('#').skip(1).map(|rest| format!("#{}", &rest[..6])) {
                    let what = format!("{scheme_name}, {template}, {property}: {value}");
                    if let Some(share) = value.strip_prefix("color-mix(in srgb, ") {
                        let share = share.split(' ').nth(1).unwrap().trim_end_matches("%,");
                        let mixed = over(colour(&hex), share.parse::<f64>().unwrap() / 100.0, page);
                        require(&what, contrast(scheme.named["ink"], mixed), TEXT);
                    } else {
                        require(&what, contrast(colour(&hex), page), GRAPHIC);
                    }
                }
                if let Some(parts) = value.strip_prefix("rgba(").filter(|_| property == "background") {
                    let parts: Vec<f64> =
                        parts.trim_end_matches(')').split(',').map(|part| part.trim().parse().unwrap()).collect();
                    let shade = over([0, 1, 2].map(|k| parts[k] / 255.0), parts[3], page);
                    require(&format!("{scheme_name}, {template}: {value}"), contrast(scheme.named["ink"], shade), TEXT);
                }
            }
        }
    }
}

#[test]
fn every_colour_of_the_figures_can_be_seen_and_their_texts_can_be_read() {
    let epoch = |epoch: usize| EpochPoint {
        epoch,
        train_loss: 2.0 / epoch as f64,
        validation_nll: 1.0,
        validation_c_td: Some(0.6),
        best: epoch == 1,
    };
    let report = report();
    let html = render_page(&page(&report, &[epoch(1), epoch(2)], &[])).unwrap();
    let (mut texts, mut marks) = (BTreeSet::new(), BTreeSet::new());
    for figure in html.split("<svg ").skip(1).map(|rest| rest.split("</svg>").next().unwrap()) {
        for element in figure.split('<').skip(1) {
            for kind in ["fill=\"#", "stroke=\"#"] {
                for hex in element.split(kind).skip(1).map(|rest| format!("#{}", &rest[..6])) {
                    if element.starts_with("text") {
                        texts.insert(hex)
                    } else {
                        marks.insert(hex)
                    };
                }
            }
        }
    }
    assert!(texts.len() >= 2 && marks.len() >= 6, "{texts:?} {marks:?}");
    let grid = "#E6E9ED";
    assert!(marks.remove(grid), "grid lines decorate");
    for (scheme_name, scheme) in schemes() {
        let [page, _] = scheme.backgrounds();
        for (colours, least, what) in [(&texts, TEXT, "text"), (&marks, GRAPHIC, "mark")] {
            for hex in colours {
                require(&format!("{scheme_name} {what} {hex}"), contrast(scheme.of_figure(hex), page), least);
            }
        }
    }
}
