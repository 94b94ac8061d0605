//! What a strategy does that predicts with one network: its baseline, predictions, features and export are those of the network.

/// The methods of [`Strategy`](super::Strategy) from `before_validation` to `export` of a strategy whose field `learner` is the
/// [`Learner`](crate::Learner) of the one network that it predicts with.
macro_rules! of_one_network {
    () => {
        fn before_validation(&mut self, parts: &$crate::predict::Parts<'_>) -> Result<(), $crate::FairnessError> {
            self.learner.fit_baseline(&parts.train)
        }

        fn predict(
            &self,
            batch: &$crate::Batch,
            rule: &$crate::predict::CurveRule<'_>,
        ) -> Result<ndarray::Array2<f64>, $crate::FairnessError> {
            self.learner.survival(batch, rule)
        }

        fn traced<'a>(
            &'a self,
            batch: &'a $crate::Batch,
            rule: &$crate::predict::CurveRule<'_>,
        ) -> Result<$crate::explain::Traced<'a>, $crate::FairnessError> {
            self.learner.traced(batch, rule)
        }

        fn features(
            &self,
            batch: &$crate::Batch,
            layer: $crate::features::Layer,
        ) -> Result<ndarray::Array2<f32>, $crate::FairnessError> {
            self.learner.features(batch, layer)
        }

        fn export(&self) -> Result<$crate::Export, $crate::FairnessError> {
            self.learner.export()
        }
    };
}

pub(super) use of_one_network;
