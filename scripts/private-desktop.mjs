// A real Xfce desktop on a virtual display, with its own bus, home, window manager, panel with a tray, and
// notification service. Used for pictures; the tests play the panel themselves.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import dbus from 'dbus-next'

const packages = {
  Xvfb: 'xvfb',
  'dbus-daemon': 'dbus-daemon',
  xfwm4: 'xfwm4',
  'xfce4-panel': 'xfce4-panel',
  hsetroot: 'hsetroot',
  xdotool: 'xdotool',
  import: 'imagemagick',
  montage: 'imagemagick',
}
const notifyd = '/usr/lib/x86_64-linux-gnu/xfce4/notifyd/xfce4-notifyd'
const limitMs = 20_000

/** The Debian packages that are missing here. */
const missingPackages = () => {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const has = (name) => folders.some((folder) => existsSync(join(folder, name)))
  const missing = Object.keys(packages).filter((name) => !has(name))
  const more = existsSync(notifyd) ? [] : ['xfce4-notifyd']
  return [...new Set(missing.map((name) => packages[name])), ...more]
}

const property = (name, type, value) => `<property name="${name}" type="${type}" value="${value}"/>`
const channel = (name, body) =>
  `<?xml version="1.0" encoding="UTF-8"?><channel name="${name}" version="1.0">${body}</channel>`

const settings = (theme) => ({
  'xfce4-panel': channel(
    'xfce4-panel',
    `${property('configver', 'int', 2)}<property name="panels" type="array"><value type="int" value="1"/>
     ${property('dark-mode', 'bool', theme === 'dark')}<property name="panel-1" type="empty">
     ${property('position', 'string', 'p=6;x=0;y=0')}${property('position-locked', 'bool', true)}
     ${property('length', 'uint', 100)}${property('size', 'uint', 30)}${property('icon-size', 'uint', 22)}
     <property name="plugin-ids" type="array"><value type="int" value="1"/><value type="int" value="2"/>
     </property></property></property><property name="plugins" type="empty">
     <property name="plugin-1" type="string" value="separator">${property('expand', 'bool', true)}
     ${property('style', 'uint', 0)}</property><property name="plugin-2" type="string" value="systray">
     ${property('square-icons', 'bool', true)}</property></property>`,
  ),
  'xfce4-notifyd': channel(
    'xfce4-notifyd',
    // At the bottom right, away from the menu, until the picture is taken.
    `${property('notify-location', 'uint', 3)}${property('expire-timeout', 'int', 120)}
     ${property('expire-timeout-allow-override', 'bool', false)}
     ${property('initial-opacity', 'double', 1)}${property('do-slideout', 'bool', false)}
     ${property('theme', 'string', theme === 'dark' ? 'Smoke' : 'Bright')}`,
  ),
})

/** Starts a desktop in `folder`. Throws with the packages to install when programs are missing. */
export const startDesktop = async (folder, { theme, scale, width, height }) => {
  const missing = missingPackages()
  if (missing.length > 0)
    throw new Error(`missing: sudo apt-get install -y --no-install-recommends ${missing.join(' ')}`)
  const home = join(folder, 'home')
  const runtime = join(folder, 'runtime')
  const configuration = join(home, '.config', 'xfce4', 'xfconf', 'xfce-perchannel-xml')
  mkdirSync(configuration, { recursive: true })
  mkdirSync(runtime, { recursive: true, mode: 0o700 })
  for (const [name, xml] of Object.entries(settings(theme)))
    writeFileSync(join(configuration, `${name}.xml`), xml)

  const children = []
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    XDG_RUNTIME_DIR: runtime,
    XDG_CURRENT_DESKTOP: 'XFCE',
    XDG_SESSION_TYPE: 'x11',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    GTK_A11Y: 'none',
    NO_AT_BRIDGE: '1',
    GDK_GL: 'disable',
    GDK_SCALE: String(scale),
  }
  const start = (file, args, stdio = 'ignore') => {
    const child = spawn(file, args, { env, cwd: folder, stdio })
    children.push(child)
    return child
  }
  const stop = async () => {
    for (const child of children.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await Promise.race([ended, delay(3000, undefined, { ref: false })])
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    }
  }
  try {
    const size = `${width * scale}x${height * scale}x24`
    const screen = ['-displayfd', '3', '-screen', '0', size, '-nolisten', 'tcp', '-noreset']
    const display = start('Xvfb', screen, ['ignore', 'ignore', 'ignore', 'pipe'])
    env.DISPLAY = `:${await firstLine(display.stdio[3], display)}`
    const bus = start(
      'dbus-daemon',
      ['--session', '--nofork', '--print-address=1'],
      ['ignore', 'pipe', 'ignore'],
    )
    env.DBUS_SESSION_BUS_ADDRESS = await firstLine(bus.stdout, bus)
    const run = (file, ...args) => execFileSync(file, args, { env, maxBuffer: 2 ** 26 })
    run('hsetroot', '-solid', theme === 'dark' ? '#44566c' : '#a9bdd1')
    start('xfwm4', ['--compositor=off'])
    start(notifyd, [])
    start('xfce4-panel', ['--disable-wm-check'])
    const session = dbus.sessionBus({ busAddress: env.DBUS_SESSION_BUS_ADDRESS })
    await once(session, 'connect')
    const names = ['org.kde.StatusNotifierWatcher', 'org.freedesktop.Notifications']
    for (const name of names) await until(name, async () => isOwned(session, name))
    return {
      env,
      run,
      readMenu: () => readMenu(session),
      closeNotifications: () => closeNotifications(session),
      stop: async () => {
        session.disconnect()
        await stop()
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const firstLine = async (stream, child) => {
  let text = ''
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('it ended at its start')))
  ended.catch(() => undefined)
  while (!text.includes('\n')) {
    const [chunk] = await Promise.race([once(stream, 'data'), ended])
    text += chunk
  }
  return text.trim()
}

/** Asks every 100 ms until the answer is true or a value; throws after 20 s. */
export const until = async (what, ask) => {
  const limit = Date.now() + limitMs
  for (;;) {
    const answer = await ask().catch(() => undefined)
    if (answer) return answer
    if (Date.now() > limit) throw new Error(`not seen in ${limitMs / 1000} s: ${what}`)
    await delay(100)
  }
}

/** Waits until the screen no longer changes, and returns it as PNG. */
export const shoot = async ({ run }) => {
  const hash = () =>
    createHash('sha256')
      .update(run('import', '-window', 'root', '-depth', '8', 'rgb:-'))
      .digest('hex')
  let last = hash()
  await until('a screen that stands still', async () => {
    await delay(400)
    const now = hash()
    const same = now === last
    last = now
    return same
  })
  return run('import', '-window', 'root', 'png:-')
}

const call = async (bus, destination, path, name, member, signature = '', body = []) => {
  const message = new dbus.Message({ destination, path, interface: name, member, signature, body })
  return (await bus.call(message))?.body ?? []
}

const isOwned = async (bus, name) => {
  const own = 'org.freedesktop.DBus'
  const [owned] = await call(bus, own, '/org/freedesktop/DBus', own, 'NameHasOwner', 's', [name])
  return owned
}

const get = async (bus, destination, path, name, key) => {
  const properties = 'org.freedesktop.DBus.Properties'
  const [value] = await call(bus, destination, path, properties, 'Get', 'ss', [name, key])
  return value.value
}

/** Closes all notifications: the service numbers them from 1 and ignores unknown numbers. */
const closeNotifications = async (bus) => {
  const name = 'org.freedesktop.Notifications'
  const path = '/org/freedesktop/Notifications'
  for (let id = 1; id <= 20; id += 1)
    await call(bus, name, path, name, 'CloseNotification', 'u', [id]).catch(() => undefined)
}

/** The visible rows of the first tray icon's menu: `{label, enabled, separator, rows}`. */
const readMenu = async (bus) => {
  const watcher = 'org.kde.StatusNotifierWatcher'
  const items = await get(
    bus,
    watcher,
    '/StatusNotifierWatcher',
    watcher,
    'RegisteredStatusNotifierItems',
  )
  const [, owner, path] = /^([^/]+)(\/.*)$/.exec(items[0])
  const menu = await get(bus, owner, path, 'org.kde.StatusNotifierItem', 'Menu')
  const name = 'com.canonical.dbusmenu'
  const [, layout] = await call(bus, owner, menu, name, 'GetLayout', 'iias', [0, -1, []])
  return rowsOf(layout)
}

const rowsOf = ([, , children]) =>
  children
    .map(({ value }) => ({
      label: String(value[1].label?.value ?? '').replaceAll('__', '_'),
      enabled: value[1].enabled?.value !== false,
      visible: value[1].visible?.value !== false,
      separator: value[1].type?.value === 'separator',
      rows: rowsOf(value),
    }))
    .filter(({ visible }) => visible)
