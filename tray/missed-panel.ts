/**
 * Whether the tray program wrote to standard error that it lost its panel at the start, and so runs
 * on without an icon. libayatana-appindicator asks twice for the session bus, once to watch for the
 * panel and once to speak to it; when the panel is found before the second answer is taken, it fails
 * to register and never tries again (src/app-indicator.c, `name_appeared_handler`, 0.5.90 to 0.5.94).
 */
export const hasMissedPanel = (stderr: string): boolean =>
  /\bg_dbus_proxy_new: assertion \W?G_IS_DBUS_CONNECTION\b/.test(stderr)
