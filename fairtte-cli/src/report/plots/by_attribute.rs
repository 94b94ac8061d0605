//! Figures of groups: one of the whole sample, then one per attribute, with a panel for every group where there are many.

use super::super::ReportError;
use super::super::names::names;

/// More groups than this get a panel each, because their bands would cover each other.
pub(super) const MAX_OVERLAID: usize = 3;

/// The panels of one attribute (or of the whole sample).
pub(crate) struct GroupFigure {
    /// The attribute; `None` for the whole sample.
    pub(crate) attribute: Option<String>,
    /// Whether every group has its own small panel.
    pub(crate) small: bool,
    /// SVG elements.
    pub(crate) panels: Vec<String>,
    /// The small panels of groups with few events.
    pub(crate) folded: Vec<String>,
}

/// What is drawn of groups.
pub(super) trait GroupPanels {
    /// A group, or the whole sample.
    type Group;

    /// Its attribute.
    fn attribute(group: &Self::Group) -> Option<&str>;

    /// Its name.
    fn name(group: &Self::Group) -> &str;

    /// Whether its small panel is folded away.
    fn is_folded(group: &Self::Group) -> bool;

    /// Whether the groups of an attribute have a panel each.
    fn has_small_panels(groups: &[Self::Group]) -> bool {
        groups.len() > MAX_OVERLAID
    }

    /// Groups over each other.
    fn overlaid(&self, groups: &[Self::Group], id: &str) -> Result<String, ReportError>;

    /// The small panel of one group.
    fn small(&self, group: &Self::Group, id: &str) -> Result<String, ReportError>;
}

/// The figures of `groups`, those of an attribute next to each other; ids are `prefix-attribute` and
/// `prefix-attribute_group`.
pub(super) fn by_attribute<P: GroupPanels>(
    prefix: &str,
    groups: &[P::Group],
    drawn: &P,
) -> Result<Vec<GroupFigure>, ReportError> {
    let of_attributes: Vec<&[P::Group]> = groups.chunk_by(|a, b| P::attribute(a) == P::attribute(b)).collect();
    let attributes = names(of_attributes.iter().map(|groups| P::attribute(&groups[0]).unwrap_or("all")));
    let figure = |(groups, attribute): (&[P::Group], String)| {
        let small = P::has_small_panels(groups);
        let (mut panels, mut folded) = (Vec::new(), Vec::new());
        if small {
            for (group, level) in groups.iter().zip(names(groups.iter().map(P::name))) {
                let place = if P::is_folded(group) { &mut folded } else { &mut panels };
                place.push(drawn.small(group, &format!("{prefix}-{attribute}_{level}"))?);
            }
        } else {
            panels.push(drawn.overlaid(groups, &format!("{prefix}-{attribute}"))?);
        }
        Ok(GroupFigure { attribute: P::attribute(&groups[0]).map(str::to_owned), small, panels, folded })
    };
    of_attributes.into_iter().zip(attributes).map(figure).collect()
}
