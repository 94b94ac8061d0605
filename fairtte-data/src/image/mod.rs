//! From image files to pixels, and one memory-mapped array per cohort. Decoding, resizing and descriptions of files are those of
//! `fairtte-images`.

mod mask;
mod store;

pub use fairtte_images::{
    AffineSource, ByteOrder, Colour, DecodedPicture, Fault, ImageConfig, Inspection, LabelMap, Limits, Matrix,
    NonFinite, Number, Picture, PictureFormat, PixelValue, Pixels, Resampling, Samples, Statistics, StoredPixels,
    Undecodable, ValueAt, Volume, VolumeConfig, VolumePlace, VolumeRange, decode_picture, decode_picture_full,
    decode_volume, decode_volume_file, inspect_file, prepare_image, read_label_map, recipe, resize_labels,
    resize_picture, resize_volume,
};
pub use mask::{check_mask_shapes, classes_of_values, write_mask};
pub use store::{DamagedImage, ImageStore, StoreEstimate, StoreOptions, StoredShard};
