import { shellWord } from '../../shell-word.ts'
import { type Check, checksOf } from '../check.ts'
import type { HomeEntry, HomeFacts } from '../look/home-files.ts'

const { ok, warning, error, skipped } = checksOf('home')

const little = 100 * 1024 * 1024
const nothing = 1024 * 1024

/** Whether only their owner can reach the files of a home, and whether there is room for more. */
export const judgeHome = (facts: HomeFacts): Check[] => {
  if (facts.unreadable !== undefined)
    return [
      error(
        'folder',
        `${facts.root} cannot be looked at (${facts.unreadable})`,
        'make it yours, or name another home with --home or DOORWARD_HOME',
      ),
    ]
  if (!facts.exists)
    return [warning('folder', `there is no home at ${facts.root} yet`, 'doorward init')]
  return [...places(facts), room(facts)]
}

const places = (facts: HomeFacts): Check[] => {
  const wrong = facts.entries.flatMap((entry) => faultOf(entry, facts) ?? [])
  if (!facts.isWritable)
    wrong.unshift(error('folder', `${facts.root} cannot be written to`, 'make it writable for you'))
  if (!facts.hasModes)
    wrong.push(skipped('modes', 'this system has no file modes that say who may read a file'))
  const secrets = facts.entries.filter(({ role }) => role === 'secret-file').length
  if (wrong.length > 0) return wrong
  return [
    ok('folder', `${facts.root} is yours alone`),
    ok('modes', `${secrets} secret ${secrets === 1 ? 'file is' : 'files are'} closed to others`),
  ]
}

const faultOf = (entry: HomeEntry, { root, hasModes, uid }: HomeFacts): Check | undefined => {
  const name = entry.path === root ? 'folder' : entry.path.slice(root.length + 1)
  const { path, role, is, mode } = entry
  const isFolderRole = role === 'folder' || role === 'secret-folder'
  if (isFolderRole !== (is === 'folder') && is !== 'link')
    return error(name, `${path} is not a ${isFolderRole ? 'folder' : 'file'}`, 'move it away')
  if (is === 'link')
    return role === 'secret-file'
      ? error(
          name,
          `${path} is a link: a secret is read from no other place`,
          'put the file itself there',
        )
      : undefined
  if (!hasModes) return undefined
  if (entry.uid !== uid)
    return error(
      name,
      `${path} belongs to another user (${entry.uid})`,
      `sudo chown ${uid} ${shellWord(path)}`,
    )
  const shown = `mode ${mode.toString(8).padStart(3, '0')}`
  if (role === 'secret-file' || role === 'secret-folder') {
    const wanted = role === 'secret-file' ? '600' : '700'
    if ((mode & 0o077) !== 0)
      return error(
        name,
        `${path} is open to other users (${shown})`,
        `chmod ${wanted} ${shellWord(path)}`,
      )
  } else if ((mode & 0o022) !== 0)
    // Who can write the configuration says which programs run.
    return error(
      name,
      `other users can write to ${path} (${shown})`,
      `chmod ${role === 'folder' ? '700' : '600'} ${shellWord(path)}`,
    )
  else if (role === 'folder' && (mode & 0o077) !== 0)
    return warning(
      name,
      `other users can look into ${path} (${shown}); the next start closes it`,
      `chmod 700 ${shellWord(path)}`,
    )
  return undefined
}

const room = ({ freeBytes, root }: HomeFacts): Check => {
  if (freeBytes === undefined)
    return skipped('disk', 'the system does not say how full the disk is')
  const shown = `${Math.floor(freeBytes / 1024 / 1024)} MB free`
  if (freeBytes < nothing)
    return error('disk', `the disk of ${root} is full`, 'make room: tokens cannot be saved')
  if (freeBytes < little) return warning('disk', `only ${shown}`, 'make room on the disk')
  return ok('disk', freeBytes >= 1024 ** 3 ? `${Math.floor(freeBytes / 1024 ** 3)} GB free` : shown)
}
