"""Pure building blocks that know no framework: states, errors, units, intervals."""
