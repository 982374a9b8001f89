"""The broker's settings: their names, defaults and bounds, and how files, environment and flags change them.

No event loop and no clock: settings are values that every layer above may hold. Reading order: ``setting_field`` (one
field with its description and bounds), ``settings`` (the list of them all), ``policy_settings`` (those that policies
of namespaces and topics override), ``tls_settings`` (the ports that use TLS), ``authentication_settings`` (who is
who), ``authorization_settings`` (who may do what), ``metrics_settings`` (what is shown of what is counted),
``advertised_listeners`` (addresses for several networks),
``properties`` (the format of Pulsar's configuration files), ``protection`` (settings whose absence would open the
broker), ``configuration`` (from all sources to one ``Settings``), ``setting_effects`` (what becomes of each setting of
Pulsar), ``dynamic_settings`` (those that change while the broker runs), ``settings_list`` (what ``magnetar config``
prints), ``settings_page`` (docs/settings.md).
"""
