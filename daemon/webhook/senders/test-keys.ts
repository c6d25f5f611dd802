import { createPublicKey, type KeyObject, randomBytes } from 'node:crypto'
import { DoorwardError } from '../../../shared/errors.ts'
import { BoundedMap } from '../../util/collections.ts'

/*
 * Public keys of tests: `webhook send` cannot have the private key of a sender, so it makes a pair, and says by
 * the local API which key its one next delivery is signed with. No other delivery is verified by it.
 */

const lifeMs = 60_000
const maxKeys = 20

type TestKey = { readonly path: string; readonly key: KeyObject; readonly until: number }

export class TestKeys {
  readonly #keys = new BoundedMap<string, TestKey>(maxKeys)
  readonly #clock: () => number

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  /** Returns what the delivery has to name. Throws `request-invalid` for what is no public key. */
  add(path: string, pem: string): string {
    const id = randomBytes(32).toString('base64url')
    this.#keys.set(id, { path, key: parsePublicKey(pem), until: this.#clock() + lifeMs })
    return id
  }

  /** The key of this delivery, once. */
  take(path: string, id: string | undefined): KeyObject | undefined {
    const found = id === undefined ? undefined : this.#keys.get(id)
    if (id === undefined || found?.path !== path) return undefined
    this.#keys.delete(id)
    return this.#clock() < found.until ? found.key : undefined
  }
}

const parsePublicKey = (pem: string): KeyObject => {
  try {
    if (pem.startsWith('-----BEGIN PUBLIC KEY-----')) return createPublicKey(pem)
  } catch {
    // The message of the library may quote the text.
  }
  throw new DoorwardError('request-invalid', 'key: not a public key in PEM')
}
