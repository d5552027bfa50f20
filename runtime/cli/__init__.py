"""The `zetta` command: one file for each verb."""
