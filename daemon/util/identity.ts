import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { type Home, readSecretFile } from '../../shared/home/home.ts'

/** Who this machine is for the others. */
export type Identity = {
  readonly id: string
  /** Of its host, and the beginning of its id, as a host may run several. */
  readonly name: string
  /** Seals what only this receiver reads. */
  readonly key: Buffer
}

const form = /^([0-9a-f]{16}) ([0-9a-f]{64})\s*$/

/** Made at the first start, and kept, as answers may come after a restart. Throws `home-insecure`. */
export const readIdentity = async (home: Home): Promise<Identity> => {
  const path = join(home.run, 'machine')
  let [, id, key] = form.exec((await readSecretFile(path)) ?? '') ?? []
  if (!id || !key) {
    id = randomBytes(8).toString('hex')
    key = randomBytes(32).toString('hex')
    await writeFileAtomic(path, `${id} ${key}\n`)
  }
  const host = hostname()
    .replaceAll(/[^\w.-]/g, '-')
    .slice(0, 60)
  return { id, name: `${host}-${id.slice(0, 4)}`, key: Buffer.from(key, 'hex') }
}
