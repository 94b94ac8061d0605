//! The figures of a page as files of their own.

/// The figures of a page in its order: the name of each, which is unique, and the text of an SVG file that needs nothing
/// else. Colours are those of the light scheme; the ground is transparent.
pub(crate) fn figures_of(html: &str) -> Vec<(String, String)> {
    // Texts are escaped, so that only a figure opens such an element.
    html.split("<svg ").skip(1).filter_map(figure).collect()
}

/// The figure whose element continues with `rest`.
fn figure(rest: &str) -> Option<(String, String)> {
    let (inside, _) = rest.split_once("</svg>")?;
    let (_, after) = inside.split_once("aria-labelledby=\"")?;
    let (name, _) = after.split_once("-title ")?;
    let content: String = inside.chars().map(|c| if is_xml(c) { c } else { '\u{fffd}' }).collect();
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"";
    Some((name.to_owned(), format!("{head} {content}</svg>\n")))
}

/// Whether XML 1.0 allows the character (section 2.2).
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::super::format::escape;
    use super::super::render_page;
    use super::super::test_reports::{ODD_LEVEL, report};
    use super::super::tests::page;
    use super::*;

    #[test]
    fn every_figure_of_the_page_is_a_file_with_a_telling_name() {
        let report = report();
        let html = render_page(&page(&report, &[], &[])).expect("the texts are plain");
        let figures = figures_of(&html);
        assert_eq!(figures.len(), html.matches("<svg ").count());
        let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
        for expected in ["forest-c-td", "forest-ibs", "survival-all", "survival-sex", "calibration-sex"] {
            assert!(names.contains(&expected), "{expected} is not in {names:?}");
        }
        let (_, survival) = figures.iter().find(|(name, _)| name == "survival-age").expect("a figure by age");
        assert!(survival.contains("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "), "{survival}");
        assert!(survival.ends_with("</svg>\n") && survival.matches("<svg").count() == 1, "{survival}");
        assert!(survival.contains(&escape(ODD_LEVEL)[..20]), "the level is escaped: {survival}");
    }

    #[test]
    fn a_character_that_xml_forbids_is_replaced() {
        let html = "<p>\u{1}</p><svg a=\"1\" aria-labelledby=\"f-title f-desc\"><text>\na\u{1b}b\u{0}c é\u{ffff}\n</text></svg>";
        let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" a=\"1\" ";
        let rest = "aria-labelledby=\"f-title f-desc\"><text>\na\u{fffd}b\u{fffd}c é\u{fffd}\n</text></svg>\n";
        assert_eq!(figures_of(html), [("f".to_owned(), format!("{head}{rest}"))]);
    }
}
