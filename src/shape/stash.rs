//! What a forward pass keeps for its backward pass.

use super::{Attention, Methods, ModelShape, Recompute, Segment, Slices};

impl ModelShape {
    /// Elements that one of the ranks that share a layer keeps from a segment's forward over `n` tokens for its
    /// backward.
    ///
    /// This is what [`crate::model`] really keeps; a test compares.
    pub fn stash_elements(&self, segment: Segment, n: usize, slices: impl Into<Slices>) -> u64 {
        let slices = slices.into();
        let (h, t) = (self.hidden as u64, slices.tp as u64);
        // A norm keeps its normalised input and its scale, of the rank's share of the sequence; then the gathered
        // input is kept too.
        let norm = (h + 1) * n as u64 / slices.between() as u64;
        let gathered = if slices.cuts_sequence() { h } else { 0 };
        let per_token = match segment {
            // Q, k, v; probabilities; the heads' output.
            Segment::Attention(_) => {
                self.qkv(slices.tp) as u64 + self.heads as u64 / t * self.seq as u64 + h / t
            }
            // Gelu's input and output.
            Segment::Mlp(_) => 2 * (self.ffn() as u64 / t),
            // Probabilities.
            Segment::Head => self.vocab_rows(slices.tp) as u64,
            Segment::Embed
            | Segment::HeadSum
            | Segment::HeadLoss
            | Segment::Finish
            | Segment::AttentionNorm(_)
            | Segment::MlpNorm(_)
            | Segment::HeadNorm
            | Segment::Share
            | Segment::Core(_) => return 0,
        };
        norm + n as u64 * (gathered + per_token)
    }

    /// As [`ModelShape::stash_elements`], less what a backward pass computes again.
    pub fn kept_elements(
        &self,
        segment: Segment,
        n: usize,
        slices: impl Into<Slices>,
        methods: Methods,
    ) -> u64 {
        let slices = slices.into();
        let all = self.stash_elements(segment, n, slices);
        let tokens = n as u64;
        let heads = (self.heads / slices.tp) as u64;
        let probabilities = tokens * heads * self.seq as u64;
        match (methods.recompute, segment) {
            (Recompute::Full, Segment::Attention(_)) => {
                tokens * self.hidden as u64 / slices.between() as u64
            }
            (Recompute::Full, Segment::Mlp(_)) => 0,
            (Recompute::Selective, Segment::Attention(_)) => all - probabilities,
            (Recompute::None, Segment::Attention(_)) if methods.attention == Attention::Fused => {
                all - probabilities
            }
            _ => all,
        }
    }

    /// Bytes that one of the ranks that share a layer keeps from a segment's forward when trained in 16 bits by
    /// Megatron-LM, dropout masks included (Korthikanti 2022): `sbh(10 + 24/t + 5as/(ht))` a layer; all over `t`
    /// with sequence parallelism; without `5as` with selective recomputation or a fused core; `2sbh` with full.
    pub fn megatron_stash_bytes(
        &self,
        segment: Segment,
        n: usize,
        slices: impl Into<Slices>,
        methods: Methods,
    ) -> u64 {
        let slices = slices.into();
        let (n, h) = (n as f64, self.hidden as f64);
        let (t, between) = (slices.tp as f64, slices.between() as f64);
        let kept_scores =
            methods.recompute == Recompute::None && methods.attention == Attention::Unfused;
        let scores = if kept_scores {
            5.0 * (self.heads * self.seq) as f64
        } else {
            0.0
        };
        let full = methods.recompute == Recompute::Full;
        // 8h and 16h are of q, k, v and the heads' output, and of four times h up and down.
        let (q, kv) = (h, (2 * self.kv_heads() * self.head_dim()) as f64);
        let ups = if self.gated { 2.0 } else { 1.0 };
        let bytes = match segment {
            Segment::Attention(_) if full => n * 2.0 * h / between,
            Segment::Mlp(_) if full => 0.0,
            Segment::Attention(_) => n * (5.0 * h / between + (4.0 * q + 2.0 * kv + scores) / t),
            Segment::Mlp(_) => n * (5.0 * h / between + 2.0 * (ups + 1.0) * self.ffn() as f64 / t),
            // The final norm's input, the head's input, and the logits in 32 bits.
            Segment::Head => n * (4.0 * h / between + 4.0 * self.vocab as f64 / t),
            Segment::Embed
            | Segment::HeadSum
            | Segment::HeadLoss
            | Segment::Finish
            | Segment::AttentionNorm(_)
            | Segment::MlpNorm(_)
            | Segment::HeadNorm
            | Segment::Share
            | Segment::Core(_) => 0.0,
        };
        bytes.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layers_activations_follow_the_published_formula() {
        let shape = ModelShape::preset("gpt3-175b").unwrap();
        let (s, h, a) = (shape.seq as f64, shape.hidden as f64, shape.heads as f64);
        let layer = |slices: Slices, methods: Methods| -> f64 {
            let of = |segment| shape.megatron_stash_bytes(segment, shape.seq, slices, methods);
            (of(Segment::Attention(0)) + of(Segment::Mlp(0))) as f64
        };
        let cut = |sequence| Slices { tp: 8, sequence };
        let none = Methods::default();
        let with = |recompute| Methods { recompute, ..none };
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
        assert!(close(
            layer(cut(false), none),
            s * h * (10.0 + 24.0 / 8.0 + 5.0 * a * s / (h * 8.0))
        ));
        assert!(close(
            layer(cut(true), none),
            s * h * (34.0 + 5.0 * a * s / h) / 8.0
        ));
        assert!(close(
            layer(cut(true), with(Recompute::Selective)),
            s * h * 34.0 / 8.0
        ));
        assert!(close(layer(cut(false), with(Recompute::Full)), s * h * 2.0));
    }
}
