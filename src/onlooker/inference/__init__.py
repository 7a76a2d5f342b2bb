"""The Gibbs machine."""
