import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import dbus, { type Message, type MessageBus } from 'dbus-next'
import { packageFolder } from '../../../shared/version.ts'
import { temporaryFolder } from '../temporary.ts'
import { end, startBus } from './session-bus.ts'

/** GNOME's keychain on a bus of its own, and a folder of its own. */
export type Keyring = {
  /** What a program needs to find it. */
  readonly env: Readonly<Record<string, string>>
  /** Starts it again with its password. */
  readonly unlock: () => Promise<void>
  /** Starts it again without: there is no window here that could ask for the password. */
  readonly lock: () => Promise<void>
  /** Puts a service in its place that never answers, as one that waits for its owner. */
  readonly hang: () => Promise<void>
  /** Removes the key of doorward from it. */
  readonly removeKey: () => Promise<void>
  readonly stop: () => Promise<void>
}

const name = 'org.freedesktop.secrets'

/** Starts it, without any password: nothing answers before `unlock`, `lock` or `hang`. */
export const startKeyring = async (): Promise<Keyring> => {
  const folder = await temporaryFolder()
  const children: ChildProcess[] = []
  const address = await startBus(folder, children)
  const bus = dbus.sessionBus({ busAddress: address })
  await once(bus, 'connect')
  let hung: MessageBus | undefined
  let service: ChildProcess | undefined

  const leave = async (): Promise<void> => {
    hung?.disconnect()
    hung = undefined
    if (service) await end(service)
    service = undefined
    await untilOwned(bus, false)
  }
  const start = async (password?: string): Promise<void> => {
    await leave()
    const options = ['--foreground', '--components=secrets']
    service = spawn(
      'gnome-keyring-daemon',
      [...options, password === undefined ? '--start' : '--unlock'],
      {
        env: {
          PATH: process.env['PATH'],
          HOME: folder,
          XDG_RUNTIME_DIR: folder,
          DBUS_SESSION_BUS_ADDRESS: address,
        },
        stdio: ['pipe', 'ignore', 'ignore'],
      },
    )
    service.stdin?.end(password)
    await untilOwned(bus, true)
  }
  const env = { DBUS_SESSION_BUS_ADDRESS: address }
  return {
    env,
    unlock: () => start('the password of the keychain'),
    lock: () => start(),
    hang: async () => {
      await leave()
      hung = dbus.sessionBus({ busAddress: address })
      await once(hung, 'connect')
      hung.addMethodHandler(() => true)
      await hung.requestName(name, 0)
    },
    removeKey: async () => {
      const script = `new (require('@napi-rs/keyring').Entry)('doorward', 'token-key',
        { linux: { store: 'secret-service' } }).deletePassword()`
      const cwd = fileURLToPath(packageFolder)
      await promisify(execFile)(process.execPath, ['-e', script], {
        cwd,
        env: { ...process.env, ...env },
      })
    },
    stop: async () => {
      await leave()
      bus.disconnect()
      for (const child of children) await end(child)
    },
  }
}

/** Waits until something has the name of the service on the bus, or nothing. */
const untilOwned = async (bus: MessageBus, wanted: boolean): Promise<void> => {
  const own = 'org.freedesktop.DBus'
  const call = (member: string, signature: string, body: unknown[]) =>
    bus.call(
      new dbus.Message({
        destination: own,
        path: '/org/freedesktop/DBus',
        interface: own,
        member,
        signature,
        body,
      }),
    )
  await call('AddMatch', 's', [
    `type='signal',sender='${own}',member='NameOwnerChanged',arg0='${name}'`,
  ])
  for (;;) {
    const changed = new Promise<void>((resolve) => {
      const onMessage = (message: Message): void => {
        if (message.member !== 'NameOwnerChanged' || message.body[0] !== name) return
        bus.off('message', onMessage)
        resolve()
      }
      bus.on('message', onMessage)
    })
    const answer = await call('NameHasOwner', 's', [name])
    if (answer?.body[0] === wanted) return
    await changed
  }
}
