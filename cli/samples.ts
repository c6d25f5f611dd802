import { readFile, readdir } from 'node:fs/promises'
import { DoorwardError } from '../shared/errors.ts'
import { nearest } from '../shared/nearest.ts'
import { packageFolder } from '../shared/version.ts'

/** A built-in payload with the name of its event, as the sender's header says it. */
export type Sample = { readonly event: string; readonly body: Buffer }

const folder = new URL('assets/samples/github/', packageFolder)

/** The names of the built-in payloads, sorted: `github:pull_request.opened`. */
export const sampleNames = async (): Promise<string[]> =>
  (await readdir(folder))
    .filter((file) => file.endsWith('.json'))
    .map((file) => `github:${file.slice(0, -'.json'.length)}`)
    .toSorted()

/** Reads a built-in payload. Throws `usage` with the nearest name for one that does not exist. */
export const readSample = async (name: string): Promise<Sample> => {
  const names = await sampleNames()
  if (!names.includes(name))
    throw new DoorwardError('usage', `there is no sample "${name}"`, {
      hint:
        nearest(name, names) ?? nearest(`github:${name}`, names) ?? `one of ${names.join(', ')}`,
    })
  const file = name.slice('github:'.length)
  return {
    event: file.split('.')[0] ?? file,
    body: await readFile(new URL(`${file}.json`, folder)),
  }
}
