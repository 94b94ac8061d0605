//! What every page keeps to: links in the order of the sections, tables that scroll, and print without what screens need.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use super::super::template::environment;

const STYLE: &str = include_str!("../style.css");
/// Pages whose sections have fixed names.
const PAGES: [(&str, &str); 7] = [
    ("page.html", include_str!("../page.html")),
    ("choice.html", include_str!("../choice.html")),
    ("models.html", include_str!("../models/models.html")),
    ("classes.html", include_str!("../classes/classes.html")),
    ("masks.html", include_str!("../masks/masks.html")),
    ("external.html", include_str!("../external/external.html")),
    ("bias/page.html", include_str!("../bias/page.html")),
];
/// Other templates with tables of numbers.
const PARTS: [(&str, &str); 9] = [
    ("samples.html", include_str!("../samples.html")),
    ("explain.html", include_str!("../explain.html")),
    ("bias/numbers.html", include_str!("../bias/numbers.html")),
    ("numbers.html", include_str!("../numbers.html")),
    ("differences.html", include_str!("../differences.html")),
    ("sheet.html", include_str!("../sheet.html")),
    ("class-table.html", include_str!("../class-table.html")),
    ("who.html", include_str!("../who.html")),
    ("method_tests/section.html", include_str!("../method_tests/section.html")),
];

/// The texts between `start` and the next quotation mark.
fn named<'a>(text: &'a str, start: &'a str) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn the_links_at_the_top_have_the_order_of_the_sections() {
    for (name, template) in PAGES {
        let (_, rest) = template.split_once("<nav").unwrap();
        let (nav, sections) = rest.split_once("</nav>").unwrap();
        let sections = named(sections, "<section id=\"");
        let place = |link: &str| sections.iter().position(|id| *id == link);
        let places: Vec<Option<usize>> = named(nav, "href=\"#").into_iter().map(place).collect();
        assert!(places.len() > 3 && places.iter().all(Option::is_some), "{name}: {places:?}");
        assert!(places.is_sorted(), "{name}: {places:?} in {sections:?}");
    }
}

#[test]
fn every_table_scrolls_and_shows_that_it_does() {
    for (name, template) in PAGES.into_iter().chain(PARTS) {
        for (before, _) in template.match_indices("<table class=").map(|(at, _)| template.split_at(at)) {
            let (_, since) = before.rsplit_once("<div class=\"scroll\">").unwrap_or_else(|| panic!("{name}"));
            assert!(!since.contains("</div>"), "{name}: {since}");
        }
    }
    let (_, rule) = STYLE.split_once("\n.scroll {").unwrap();
    let (rule, _) = rule.split_once('}').unwrap();
    assert!(rule.contains("overflow-x: auto") && rule.contains("var(--shade), transparent) right"), "{rule}");
}

#[test]
fn every_table_has_a_caption_and_every_heading_a_scope() {
    for (name, template) in PAGES.into_iter().chain(PARTS) {
        assert_eq!(template.matches("<table").count(), template.matches("<caption").count(), "{name}");
        // A corner without a text is a cell and no heading.
        assert!(!template.contains("<th>"), "{name}");
    }
}

#[test]
fn folded_sections_are_printed_and_no_empty_sheet_follows() {
    let (_, print) = STYLE.split_once("@media print {").unwrap();
    assert!(print.contains("details:not(:has(> .smalls))::details-content { content-visibility: visible;"), "{print}");
    assert!(print.contains("nav, footer { display: none; }"), "{print}");
}

/// The figures of a section: title, panels, and whether they are small.
fn panels(figures: &[(&str, usize, bool)]) -> String {
    let figure = |&(title, n, small): &(&str, usize, bool)| {
        let shown = vec!["panel"; n];
        minijinja::context! { title, small, shown, folded => Vec::<&str>::new(), few => "" }
    };
    let figures: Vec<_> = figures.iter().map(figure).collect();
    let template = "{%- set caption %}<p>One line. Another <i>line</i>.</p>{% endset %}{{ figures|panels(caption) }}";
    let environment = environment(template).unwrap();
    environment.get_template("page.html").unwrap().render(minijinja::context! { figures }).unwrap()
}

#[test]
fn rows_of_figures_are_full() {
    let even = panels(&[("All samples", 1, false), ("By sex", 1, false)]);
    assert!(even.starts_with("\n<p>One line. Another"), "{even}");
    // The caption in place of the figure that lacks, with a line per sentence.
    let odd = panels(&[("All samples", 1, false), ("By sex", 1, false), ("By race", 1, false)]);
    assert!(
        odd.contains("<div class=\"pair\">\n<div class=\"beside\"><p>One line.<br>Another <i>line</i>.</p></div>"),
        "{odd}"
    );
    // Two panels fill a row by themselves.
    let two = panels(&[("All samples", 2, false), ("By sex", 2, false), ("By race", 2, false)]);
    assert!(two.starts_with("\n<p>One line. Another") && !two.contains("beside"), "{two}");
    assert!(
        two.contains("<figure class=\"row\">\n<h3>All samples</h3>") && two.matches("<figure>").count() == 2,
        "{two}"
    );
    // Small panels of 1 and 2 groups share a row of three; more have rows of their own.
    let small = panels(&[("All samples", 1, true), ("By sex", 2, true), ("By race", 5, true)]);
    let widths: Vec<&str> = named(&small, "<div class=\"strip\" style=\"");
    assert_eq!(widths, ["--k:1", "--k:2", "--k:3"]);
    assert!(!small.contains("class=\"pair\""), "{small}");
}
