//! Tests of the JPEG decoding.
