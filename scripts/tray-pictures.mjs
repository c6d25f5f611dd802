// Takes the pictures of the tray in docs/pictures, on the panel of a virtual display:
//   DOORWARD_PORT=18789 node scripts/tray-pictures.mjs [FOLDER]     # other than docs/pictures
// The menu shows the port; without the variable it is any free one.
// Each state of the icon is real: an agent that answers, one that fails, one that waits for a signal, and
// a daemon that is stopped.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { shoot, startDesktop, until } from './private-desktop.mjs'
import { root, setUp } from './setup.mjs'

const width = 960
const height = 660
const panelHeight = 30
const states = ['idle', 'running', 'needs-you', 'unreachable']
const cli = join(root, 'dist', 'bin', 'doorward.cjs')

const main = async () => {
  await setUp()
  const target = resolve(process.argv[2] ?? join(root, 'docs', 'pictures'))
  mkdirSync(target, { recursive: true })
  const scratch = mkdtempSync(join(tmpdir(), 'doorward-pictures-'))
  const say = (name) => console.log(`wrote ${join(target, name)}`)
  try {
    for (const theme of ['dark', 'light']) {
      for (const scale of [1, 2]) {
        const folder = join(scratch, `${theme}-${scale}`)
        mkdirSync(folder)
        const pictures = await visit(folder, { theme, scale })
        for (const [name, png] of Object.entries(pictures)) {
          if (scale === 2 && !states.includes(name)) continue
          const file = join(folder, `${name}.png`)
          writeFileSync(file, png)
          if (states.includes(name)) crop(file, `${panelHeight * scale}x${panelHeight * scale}`)
        }
      }
    }
    for (const [picture, file] of Object.entries({
      'tray.png': 'dark-1/menu.png',
      'tray-light.png': 'light-1/menu.png',
      'tray-accounts.png': 'dark-1/accounts.png',
      'tray-notification.png': 'light-1/notification.png',
    })) {
      execFileSync('convert', [join(scratch, file), '-strip', join(target, picture)])
      say(picture)
    }
    contactSheet(scratch, join(target, 'tray-icons.png'))
    say('tray-icons.png')
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Every state on one desktop: the screens by name, as PNG. */
const visit = async (folder, { theme, scale }) => {
  const desktop = await startDesktop(folder, { theme, scale, width, height })
  const home = join(folder, 'doorward')
  const gate = join(folder, 'gate')
  writeHome(home, gate)
  const env = { ...desktop.env, DOORWARD_HOME: home }
  const doorward = (...args) =>
    execFileSync(process.execPath, [cli, ...args], { env, stdio: 'pipe' })
  const send = (path, ...more) =>
    doorward('webhook', 'send', path, join(home, 'payload.json'), ...more)
  const untilRow = (at, pattern) =>
    until(pattern.source, async () => pattern.test((await desktop.readMenu())[at]?.label ?? ''))
  const pictures = {}
  let tray
  try {
    doorward('daemon', 'start')
    tray = spawn(process.execPath, [cli, 'tray'], { env, stdio: 'ignore' })
    await untilRow(0, /^Ready/)
    send('/stripe', '--wait')
    pictures.idle = await shoot(desktop)
    await desktop.closeNotifications()

    try {
      send('/calendar', '--wait')
    } catch {
      // The failure is intended.
    }
    await untilRow(1, /^!/)
    pictures['needs-you'] = await shoot(desktop)
    const note = await until('a notification', async () => notesOf(desktop)[0])
    await shoot(desktop)
    pictures.notification = desktop.run('import', '-window', note, 'png:-')

    send('/github', '--wait')
    send('/nightly')
    await untilRow(0, /running/)
    // The panel ignores a click while the pointer moves.
    pictures.running = await shoot(desktop)
    pictures.accounts = await openMenu(desktop, scale, 'Accounts')
    pictures.menu = await openMenu(desktop, scale, 'Recent events')
    writeFileSync(gate, 'Nothing to report.\n')
    await untilRow(0, /^Ready/)

    doorward('daemon', 'stop')
    await untilRow(0, /not running/)
    pictures.unreachable = await shoot(desktop)
    return pictures
  } finally {
    try {
      doorward('daemon', 'stop')
    } catch {
      // It was stopped before.
    }
    if (tray && tray.exitCode === null) {
      tray.kill('SIGTERM')
      await Promise.race([once(tray, 'exit'), delay(5000, undefined, { ref: false })])
    }
    await desktop.stop()
  }
}

/** The windows of the visible notifications. */
const notesOf = ({ run }) => {
  const windows = run('xdotool', 'search', '--onlyvisible', '--class', 'notifyd').toString()
  return windows.split('\n').filter((id) => id !== '')
}

/** Opens the menu by a click and a submenu by the keyboard, takes the picture and closes both. */
const openMenu = async (desktop, scale, label) => {
  const rows = await desktop.readMenu()
  const at = rows
    .filter((row) => row.enabled && !row.separator)
    .findIndex((row) => row.label === label)
  if (at < 0) throw new Error(`no row ${label} in ${rows.map((row) => row.label).join(', ')}`)
  const [x, y] = [width - panelHeight / 2, panelHeight / 2].map((value) => String(value * scale))
  desktop.run('xdotool', 'mousemove', x, y, 'click', '1')
  await shoot(desktop)
  desktop.run('xdotool', 'key', ...Array.from({ length: at + 1 }, () => 'Down'), 'Right')
  const picture = await shoot(desktop)
  // The panel highlights the icon under the pointer.
  desktop.run('xdotool', 'key', 'Escape', 'Escape', 'mousemove', '10', String(100 * scale))
  await shoot(desktop)
  return picture
}

const writeHome = (home, gate) => {
  for (const name of ['config', 'tokens', 'run', 'logs', 'clients'])
    mkdirSync(join(home, name), { recursive: true, mode: 0o700 })
  const write = (name, text) => writeFileSync(join(home, name), text, { mode: 0o600 })
  execFileSync('mkfifo', [gate])
  write('.env', 'WEBHOOK_SECRET=only-for-pictures\n')
  write('payload.json', '{"number": 117}\n')
  write(
    'review.txt',
    `Looks good to me. One remark:
- parse() loses the last line of a file without a newline
- everything else is covered by tests
`,
  )
  write(
    'config/agents.yaml',
    `agents:
  accountant: { kind: command, command: [echo, Invoice 2026-117 was paid] }
  planner: { kind: command, command: [sh, -c, 'echo no such model >&2; exit 2'] }
  reviewer: { kind: command, command: [cat, "${join(home, 'review.txt')}"] }
  watchman: { kind: command, command: [cat, "${gate}"] }
`,
  )
  const webhook = (path, agent) => `  - path: ${path}
    agent: ${agent}
    prompt_template: "{{event.number}}"
    secret_env: WEBHOOK_SECRET
    deliver_to: ${path === '/github' ? 'notify:desktop' : 'none'}
`
  const webhooks = [
    '/stripe accountant',
    '/calendar planner',
    '/github reviewer',
    '/nightly watchman',
  ]
  write(
    'config/webhooks.yaml',
    `webhooks:\n${webhooks.map((both) => webhook(...both.split(' '))).join('')}`,
  )
  write('config/gateway.yaml', `server: { port: ${process.env.DOORWARD_PORT ?? 0} }\n`)
  const now = Date.now()
  for (const [provider, name] of Object.entries({ github: 'ada', google: 'ada@example.com' }))
    write(
      `tokens/${provider}.json`,
      JSON.stringify({
        version: 1,
        provider,
        account: { id: name, name },
        scopes: [],
        tokenType: 'Bearer',
        accessToken: 'only-for-pictures',
        refreshToken: 'only-for-pictures',
        expiresAt: new Date(now + 7_200_000).toISOString(),
        obtainedAt: new Date(now).toISOString(),
        clientId: 'only-for-pictures',
      }),
    )
}

/** Keeps the right end of the panel, where the icon is. */
const crop = (file, size) => {
  execFileSync('convert', [file, '-gravity', 'NorthEast', '-crop', `${size}+0+0`, '+repage', file])
}

/** All states on the dark and the light panel, at normal and at double resolution. */
const contactSheet = (scratch, file) => {
  const cells = ['dark-1', 'dark-2', 'light-1', 'light-2'].flatMap((visited) =>
    states.flatMap((name) => [
      '-label',
      visited === 'light-2' ? name : ' ',
      join(scratch, visited, `${name}.png`),
    ]),
  )
  const layout = [
    '-tile',
    '4x4',
    '-geometry',
    '60x60+24+2>',
    '-pointsize',
    '13',
    '-font',
    'DejaVu-Sans',
  ]
  execFileSync('montage', [...cells, ...layout, '-background', '#ffffff', '-strip', file])
}

await main()
