// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`ImageConfig`]: ImageConfig
//! [`prepare_image`]: prepare_image
//! [`Pixels`]: Pixels
//! [`Undecodable`]: Undecodable
//! [`decode_picture`]: decode_picture
//! [`decode_volume_file`]: decode_volume_file
//! [`inspect_file`]: inspect_file
//! [`read_label_map`]: read_label_map
//! [`Augmentation`]: augment::Augmentation
//! [`Conversion`]: Conversion
//! [`GaussianBlur`]: GaussianBlur
//! [`Limits`]: Limits
#![doc = include_str!("../README.md")]

pub mod augment;
mod blur;
mod config;
mod conversion;
mod dicom_series;
pub mod drawn;
mod inspect;
mod label_map;
mod limits;
mod mask;
mod nifti;
mod picture;
mod prepare;
mod recipe;
mod resize;
mod setting;
mod stored;
mod undecodable;
mod volume;
mod volume_resize;

pub use blur::GaussianBlur;
pub use config::ImageConfig;
pub use conversion::{Conversion, Scratch, Transform};
pub use dicom_series::slice_files;
pub use inspect::{Inspection, Number, PixelValue, ValueAt, inspect_file};
pub use label_map::{LabelMap, VolumePlace, read_label_map};
pub use limits::Limits;
pub use mask::{encode_mask, map_labels, resize_labels};
pub use nifti::{AffineSource, ByteOrder, Matrix, halves_of_pair};
pub use picture::{
    Colour, DecodedPicture, Picture, PictureFormat, Samples, Statistics, decode_picture, decode_picture_full,
};
pub use prepare::{Pixels, prepare_image};
pub use recipe::recipe;
pub use resize::resize_picture;
pub use setting::{InvalidSetting, Settings};
pub use stored::{StoredPixels, StoredValue, full_scale};
pub use undecodable::{Fault, Undecodable};
pub use volume::{NonFinite, Volume, VolumeConfig, VolumeRange, decode_volume, decode_volume_file};
pub use volume_resize::{Resampling, resize_volume};
