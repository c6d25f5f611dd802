import assert from 'node:assert/strict'
import { type HomeEntry, findFault } from '../../../../cli/commands/doctor/home.ts'
import { checkPorts } from '../../../../cli/commands/doctor/ports.ts'
import { shapeFault } from '../../../../cli/commands/doctor/secrets.ts'
import { checkClock } from '../../../../cli/commands/doctor/system.ts'
import { checkTray } from '../../../../cli/commands/doctor/tray.ts'
import { isAtLeast } from '../../../../shared/version.ts'

describe('doctor: home', () => {
  const entry = (more: Partial<HomeEntry>): HomeEntry => ({
    path: '/h/.env',
    role: 'secret-file',
    is: 'file',
    uid: 1000,
    mode: 0o600,
    ...more,
  })
  const folder = { role: 'folder', is: 'folder', path: '/h' } as const

  const cases: readonly (readonly [string, Partial<HomeEntry>, string, RegExp, string?])[] = [
    ['a closed secret', {}, 'ok', /./],
    ['a secret that others can read', { mode: 0o644 }, 'error', /mode 644/, 'chmod 600 /h/.env'],
    ['a secret of another user', { uid: 0 }, 'error', /user \(0\)/, 'sudo chown 1000 /h/.env'],
    ['a link in place of a secret', { is: 'link' }, 'error', /is a link/],
    ['a folder in place of a secret', { is: 'folder' }, 'error', /is not a file/],
    ['a home that others can list', { ...folder, mode: 0o755 }, 'warning', /look into/],
    ['a home that others can write', { ...folder, mode: 0o775 }, 'error', /write to/],
    [
      'a folder of secrets that others can list',
      { ...folder, path: '/h/my run', role: 'secret-folder', mode: 0o750 },
      'error',
      /mode 750/,
      "chmod 700 '/h/my run'",
    ],
    [
      'a configuration that others can write',
      { path: '/h/config/agents.yaml', role: 'config-file', mode: 0o646 },
      'error',
      /write to/,
    ],
    [
      'a configuration that others can read',
      { path: '/h/config/agents.yaml', role: 'config-file', mode: 0o644 },
      'ok',
      /./,
    ],
  ]
  for (const [title, more, status, detail, hint] of cases)
    it(`tells ${title}`, () => {
      const check = findFault(entry(more), '/h', 1000)
      assert.equal(check?.status ?? 'ok', status)
      assert.match(check?.detail ?? '-', detail)
      if (hint !== undefined) assert.equal(check?.hint, hint)
    })
})

describe('doctor: secrets', () => {
  for (const text of ['changeme', 'your-webhook-secret', '<secret>', 'xxxx', 'REPLACE_ME', '$X'])
    it(`takes ${text} for a placeholder`, () => assert.equal(shapeFault(text)?.bad, true))

  it('tells a secret that can be guessed from one that cannot', () => {
    assert.match(shapeFault('hunter2hunter2')?.reason ?? '', /shorter than 16/)
    assert.match(shapeFault('abababababababababab')?.reason ?? '', /repeats/)
    assert.equal(shapeFault('4f6f1c0d9b7a4e52a9f1'), undefined)
    assert.equal(shapeFault('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'), undefined)
  })
})

describe('doctor: system', () => {
  it('compares versions by their numbers', () => {
    assert.equal(isAtLeast('v20.20.2', '>=20.19'), true)
    assert.equal(isAtLeast('v20.9.0', '>=20.19'), false)
    assert.equal(isAtLeast('v18.20.0', '>=20.19'), false)
    assert.equal(isAtLeast('v22.0.0', '>=20.19'), true)
  })

  const hour = 3_600_000
  const clocks: readonly (readonly [string, number | undefined, boolean | undefined, string])[] = [
    ['of which nothing is known', undefined, undefined, 'skipped'],
    ['that the system synchronizes', undefined, true, 'ok'],
    ['that the system does not synchronize', undefined, false, 'skipped'],
    ['that a server contradicts', hour, true, 'error'],
    ['that is a little off', 90_000, true, 'warning'],
    ['that a server confirms', 700, undefined, 'ok'],
  ]
  for (const [title, aheadMs, isSynchronized, status] of clocks)
    it(`checks a clock ${title}`, () =>
      assert.equal(checkClock(aheadMs, isSynchronized, false).status, status))
})

describe('doctor: ports', () => {
  it('takes the daemon for a login that waits only where it listens for one', () => {
    const file = { pid: 7, url: 'http://127.0.0.1:4000', publicUrl: 'http://127.0.0.1:4001' }
    const daemon = { file: { ...file, version: '1', startedAt: '' }, isAlive: true }
    const callback = (port: number) => {
      const facts = { what: 'callback', setting: 'oauth.callback_port', port, is: 'used' } as const
      return checkPorts([{ ...facts, holder: { pid: 7, name: 'node' } }], daemon)[0]
    }
    assert.deepEqual(
      [4000, 4001, 4002].map((port) => callback(port)?.status),
      ['error', 'error', 'ok'],
    )
    assert.match(
      callback(4000)?.detail ?? '',
      /^4000 is the port of the daemon itself: logins cannot return/,
    )
  })
})

describe('doctor: tray', () => {
  const good = {
    platform: 'linux',
    arch: 'x64',
    program: 'good',
    pid: undefined,
    hasDisplay: true,
    hasBus: true,
    hasHost: true,
    hasXHost: false,
    isGnome: false,
    hasNotifications: true,
    hasLibrary: true,
  } as const
  const statusOf = (facts: Parameters<typeof checkTray>[0], name: string) =>
    checkTray(facts).find((check) => check.name === name)?.status

  it('says that nobody is shown what a webhook delivers to it while it does not run', () => {
    const webhook = { path: '/orders', enabled: true, rules: [{ targets: [{ kind: 'notify' }] }] }
    const running = (config: Parameters<typeof checkTray>[1], pid?: number) =>
      checkTray({ ...good, pid }, config).find(({ name }) => name === 'running')
    const check = running({ webhooks: [webhook] })
    assert.equal(check?.status, 'warning')
    assert.match(check.detail, /what \/orders delivers to/)
    const others = ['/a', '/b', '/c'].map((path) => ({ ...webhook, path }))
    assert.match(
      running({ webhooks: [webhook, ...others] })?.detail ?? '',
      /what \/orders and 3 more deliver to/,
    )
    assert.equal(check.hint, 'doorward tray')
    const [, away] = checkTray(
      { ...good, hasDisplay: false, hasHost: false },
      { webhooks: [webhook] },
    )
    assert.match(away?.hint ?? '', /no desktop here: .*doorward events --follow$/)
    assert.equal(running({ webhooks: [webhook] }, 5)?.status, 'ok')
    assert.equal(running({ webhooks: [{ ...webhook, enabled: false }] })?.status, 'skipped')
    assert.equal(
      running({ webhooks: [{ ...webhook, rules: [{ targets: [{ kind: 'log' }] }] }] })?.status,
      'skipped',
    )
  })

  it('never runs a changed program, and wants no desktop where there is none', () => {
    assert.equal(statusOf({ ...good, program: 'changed' }, 'program'), 'error')
    assert.equal(statusOf({ ...good, hasHost: false }, 'host'), 'warning')
    assert.equal(statusOf({ ...good, hasNotifications: false }, 'notifications'), 'warning')
    assert.equal(statusOf({ ...good, hasHost: undefined }, 'host'), 'skipped')
    assert.equal(statusOf({ ...good, hasLibrary: false }, 'library'), 'ok')
    assert.equal(statusOf({ ...good, hasLibrary: false, hasHost: false }, 'library'), 'warning')
    const noDisplay = { ...good, hasDisplay: false, hasHost: false }
    assert.equal(statusOf({ ...noDisplay, hasBus: false }, 'session'), 'skipped')
    assert.deepEqual(
      checkTray({ ...noDisplay, hasNotifications: false, hasLibrary: false })
        .map(({ name, status }) => `${name} ${status}`)
        .slice(2),
      ['session skipped'],
    )
    assert.equal(statusOf({ ...good, hasDisplay: false }, 'host'), 'ok')
  })

  it('counts an older panel of the X server, and names what GNOME needs', () => {
    const older = { ...good, hasHost: false, hasXHost: true }
    assert.equal(statusOf(older, 'host'), 'ok')
    assert.equal(statusOf({ ...older, hasBus: false, hasHost: undefined }, 'host'), 'ok')
    assert.equal(statusOf({ ...older, hasLibrary: false }, 'library'), 'warning')
    const hint = (isGnome: boolean) =>
      checkTray({ ...good, hasHost: false, isGnome }).find(({ name }) => name === 'host')?.hint
    assert.match(
      hint(true) ?? '',
      /^install gnome-shell-extension-appindicator .*doorward tray --wait/,
    )
    assert.match(hint(false) ?? '', /waybar; doorward tray --wait/)
  })
})
