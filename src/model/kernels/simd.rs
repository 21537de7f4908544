//! What lets the compiler vectorise: instruction sets chosen at run time, sums in lanes, an exponential
//! without branches.

/// Partial sums kept side by side: two AVX2 registers, or one of AVX-512.
pub(crate) const LANES: usize = 16;

/// Defines a function twice, portable and with AVX2 and FMA, and takes the better one at run time.
///
/// Inside, the constant `FUSED` tells whether [`mul_add`] may be one instruction. Helpers called there must be `#[inline(always)]`, or they are compiled for the portable one alone.
macro_rules! kernel {
    (
        $(#[$meta:meta])*
        $visible:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    ) => {
        $(#[$meta])*
        #[cfg_attr(
            target_arch = "x86_64",
            expect(unsafe_code, reason = "a call into code for instructions just found to be there")
        )]
        $visible fn $name($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body<const FUSED: bool>($($arg: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide($($arg: $type),*) $(-> $result)? {
                    body::<true>($($arg),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: this machine has the instructions that `wide` was compiled for.
                    return unsafe { wide($($arg),*) };
                }
            }
            body::<false>($($arg),*)
        }
    };
}
pub(crate) use kernel;

/// `e^x` to about one unit in the last place; 0 and infinity are replaced by the nearest ordinary number.
///
/// After Cephes' `expf`: `2^n * e^r` with `|r| <= ln(2)/2`, and a polynomial for `e^r`.
#[inline(always)]
pub(crate) fn exp<const FUSED: bool>(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it leaves the nearest integer in the low bits.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Written so that a NaN stays one.
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = mul_add::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = mul_add::<FUSED>(n, -LN_2_HIGH, x);
    let r = mul_add::<FUSED>(n, -LN_2_LOW, r);
    let mut p = mul_add::<FUSED>(1.987_569_1e-4, r, 1.398_199_9e-3);
    p = mul_add::<FUSED>(p, r, 8.333_452e-3);
    p = mul_add::<FUSED>(p, r, 4.166_579_6e-2);
    p = mul_add::<FUSED>(p, r, 1.666_666_6e-1);
    p = mul_add::<FUSED>(p, r, 0.5);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    (mul_add::<FUSED>(p * r, r, r) + 1.0) * power
}

/// `a * b + c`. Fused only where that is an instruction: elsewhere it would be a slow function call.
#[inline(always)]
pub(crate) fn mul_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The lanes' sum, pairwise.
#[inline(always)]
pub(crate) fn add_lanes(mut lanes: [f32; LANES]) -> f32 {
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    lanes[0]
}

/// `sum(f(a))` over a row.
#[inline(always)]
pub(crate) fn sum(a: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] += f(chunk[i]);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane += f(x);
    }
    add_lanes(lanes)
}

/// `sum(a * b)` over two rows of equal length.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        for i in 0..LANES {
            lanes[i] += x[i] * y[i];
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane += x * y;
    }
    add_lanes(lanes)
}

/// The largest element of a row, negative infinity if it has none; a NaN is passed over.
#[inline(always)]
pub(crate) fn max(a: &[f32]) -> f32 {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], chunk[i]);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, x);
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exact_to_a_few_parts_in_ten_million() {
        for i in -8600..8700_i16 {
            let x = f32::from(i) / 100.0;
            let exact = f64::from(x).exp();
            for found in [exp::<false>(x), exp::<true>(x)] {
                let error = (f64::from(found) / exact - 1.0).abs();
                assert!(error < 2e-7, "exp({x}) is off by {error}");
            }
        }
        assert!(exp::<false>(f32::NAN).is_nan());
        assert_eq!(exp::<false>(0.0), 1.0);
    }

    #[test]
    fn rows_of_any_length_are_summed_whole() {
        for length in [1, 5, 16, 17, 40] {
            let a: Vec<f32> = (0..length).map(|i| i as f32).collect();
            let naive: f32 = a.iter().sum();
            assert_eq!(sum(&a, |x| x), naive);
            assert_eq!(dot(&a, &vec![2.0; length]), 2.0 * naive);
            assert_eq!(max(&a), (length - 1) as f32);
        }
    }
}
