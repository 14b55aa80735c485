//! No provider: it runs nothing, so no setting can promise what is not kept.

use super::Profile;

/// What the other settings must know.
pub const PROFILE: Profile = Profile {
    name: "disabled",
    ..Profile::NONE
};
