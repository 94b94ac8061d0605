//! What the registries of heads and strategies share: things that a run file chooses by the name of a table, in an enum with
//! one variant each, and those that other crates add.
//!
//! A registry is an enum made by the macro [`registry!`](crate::registry!) from one line per thing, and a static
//! [`Additions`] with the rest. Own settings are read by serde as they stand; those of other crates are read as a JSON
//! value first, because their types are known only when the program runs.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde::de::{DeserializeOwned, Error as _, VariantAccess};
use serde::{Serialize, Serializer};

/// The settings of a thing that another crate added; `T` is the trait of the settings of its kind.
pub struct Registered<T: ?Sized> {
    name: &'static str,
    settings: Arc<T>,
    /// The settings as they are written, every default included.
    written: serde_json::Value,
}

impl<T: ?Sized> Registered<T> {
    /// The settings.
    pub fn settings(&self) -> &T {
        &self.settings
    }
}

impl<T: ?Sized> Clone for Registered<T> {
    fn clone(&self) -> Self {
        Self { name: self.name, settings: Arc::clone(&self.settings), written: self.written.clone() }
    }
}

impl<T: ?Sized> fmt::Debug for Registered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registered({} {})", self.name, self.written)
    }
}

impl<T: ?Sized> PartialEq for Registered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.written == other.written
    }
}

impl<T: ?Sized> Serialize for Registered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

/// Reads the settings of one added thing.
type Read<T> = dyn Fn(serde_json::Value) -> Result<Registered<T>, serde_json::Error> + Send + Sync;

struct Entry<T: ?Sized> {
    name: &'static str,
    summary: &'static str,
    read: Arc<Read<T>>,
}

impl<T: ?Sized> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self { name: self.name, summary: self.summary, read: Arc::clone(&self.read) }
    }
}

/// Things of one kind that other crates add, in the order in which they were added; `T` is the trait of their settings.
pub struct Additions<T: ?Sized> {
    entries: RwLock<Vec<Entry<T>>>,
}

impl<T: ?Sized> Additions<T> {
    /// No additions yet.
    #[expect(clippy::new_without_default, reason = "a registry is a static, which needs a constant")]
    pub const fn new() -> Self {
        Self { entries: RwLock::new(Vec::new()) }
    }

    fn entries(&self) -> Vec<Entry<T>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds `name`, with settings `S` that `share` makes one of the kind; replaces an earlier addition of that name.
    pub fn add<S>(&self, name: &'static str, summary: &'static str, share: fn(S) -> Arc<T>)
    where
        S: Serialize + DeserializeOwned + 'static,
        T: 'static,
    {
        let read = move |value| {
            let settings: S = serde_json::from_value(value)?;
            Ok(Registered { name, written: serde_json::to_value(&settings)?, settings: share(settings) })
        };
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.name != name);
        entries.push(Entry { name, summary, read: Arc::new(read) });
    }

    /// Names and summaries.
    pub fn catalogue(&self) -> Vec<(&'static str, &'static str)> {
        self.entries().iter().map(|entry| (entry.name, entry.summary)).collect()
    }

    /// The addition `name` with the settings that `variant` holds.
    ///
    /// # Errors
    /// The error of serde for settings that do not fit; an unknown variant if nothing of that name was added, with the names
    /// that are known: `own` and those of the additions.
    pub fn read<'de, A>(&self, name: &str, variant: A, own: &[&'static str]) -> Result<Registered<T>, A::Error>
    where
        A: VariantAccess<'de>,
    {
        let entries = self.entries();
        let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
            let known = own.iter().copied().chain(entries.iter().map(|entry| entry.name));
            let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            return Err(A::Error::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", "))));
        };
        let settings = variant.newtype_variant::<serde_json::Value>()?;
        (entry.read)(settings).map_err(A::Error::custom)
    }

    /// The schema of the choice: a table with one key, a name of `own` (name, description and schema of its settings) or of
    /// an addition, whose settings may be any table.
    #[cfg(feature = "schema")]
    pub fn schema(&self, own: &[(&str, &str, schemars::Schema)]) -> schemars::Schema {
        let choice = |name: &str, about: &str, settings: &schemars::Schema| {
            schemars::json_schema!({
                "description": about,
                "type": "object",
                "properties": { name: settings },
                "required": [name],
                "additionalProperties": false
            })
        };
        let any = schemars::json_schema!({ "type": "object" });
        let own = own.iter().map(|(name, about, settings)| choice(name, about, settings));
        let added = self.catalogue().into_iter().map(|(name, summary)| choice(name, summary, &any));
        let choices: Vec<schemars::Schema> = own.chain(added).collect();
        schemars::json_schema!({ "oneOf": choices })
    }
}

/// The enum of all things of one kind, with what serde and the catalogue need of it. Each line has the name in run files, the
/// variant and its settings, which implement the trait `$Settings`; a line of documentation before it is its description in
/// the schema, in place of its summary.
#[doc(hidden)]
#[macro_export]
macro_rules! registry {
    (
        $(#[$about:meta])*
        $Config:ident: a $kind:literal with $Settings:ident, others in $ADDITIONS:ident;
        $($(#[doc = $description:literal])? $name:literal $variant:ident($own:ty)),+ $(,)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $Config {
            $(#[doc = concat!("`", $name, "`")] $variant($own),)+
            /// One that another crate registered.
            Registered($crate::Registered<dyn $Settings>),
        }

        impl $Config {
            /// Names of those of this crate.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// The settings, whatever they are of.
            pub fn settings(&self) -> &dyn $Settings {
                match self {
                    $(Self::$variant(settings) => settings,)+
                    Self::Registered(registered) => registered.settings(),
                }
            }

            /// Name in run files.
            pub fn name(&self) -> &'static str {
                self.settings().name()
            }

            /// Name and one-line summary of every one, those of other crates last.
            pub fn catalogue() -> Vec<(&'static str, &'static str)> {
                let own = vec![$(($name, <$own>::default().summary())),+];
                own.into_iter().chain($ADDITIONS.catalogue()).collect()
            }
        }

        impl ::serde::Serialize for $Config {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let (kind, name) = (stringify!($Config), self.name());
                match self {
                    $(Self::$variant(settings) => serializer.serialize_newtype_variant(kind, 0, name, settings),)+
                    Self::Registered(settings) => serializer.serialize_newtype_variant(kind, 0, name, settings),
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $Config {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Named;

                impl<'de> ::serde::de::Visitor<'de> for Named {
                    type Value = $Config;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("the name of a ", $kind, " with a table of its settings"))
                    }

                    fn visit_enum<A: ::serde::de::EnumAccess<'de>>(self, data: A) -> Result<$Config, A::Error> {
                        use ::serde::de::VariantAccess as _;
                        let (name, variant) = data.variant::<String>()?;
                        match name.as_str() {
                            $($name => variant.newtype_variant().map($Config::$variant),)+
                            other => $ADDITIONS.read(other, variant, &$Config::NAMES).map($Config::Registered),
                        }
                    }
                }

                deserializer.deserialize_enum(stringify!($Config), &Self::NAMES, Named)
            }
        }

        #[cfg(feature = "schema")]
        impl ::schemars::JsonSchema for $Config {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($Config).into()
            }

            fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let own = [$({
                    let described = [$($description,)? <$own>::default().summary()];
                    ($name, described[0].trim(), generator.subschema_for::<$own>())
                }),+];
                $ADDITIONS.schema(&own)
            }
        }
    };
}
