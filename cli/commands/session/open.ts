import { access, mkdir, realpath, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { OpenedSession, SessionSummary } from '../../../shared/api/sessions.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { execChild } from '../../exec-child.ts'
import { shellWord } from '../../terminal/format.ts'
import {
  type OpenNote,
  programStores,
  readNote,
  removeOpened,
  type Store,
  toNotePath,
  withSafePath,
} from './program-stores.ts'
import { findSession } from './session.ts'

/**
 * Puts a conversation where its program looks for it, and starts the program there, in a checkout of the commit that
 * the last event saw. Without a terminal it prints the command instead. Throws `session-not-found`.
 */
export const openSession = async (context: Context, words: readonly string[]): Promise<void> => {
  const { terminal, home } = context
  const opened = await withDaemon(context, async (client) => {
    const { id } = await findSession(client, words)
    return client.post<OpenedSession>(`/sessions/${id}/open`)
  })
  const { session, conversation } = opened
  const store = programStores[session.program]
  if (!store)
    throw new DoorwardError(
      'session-not-found',
      `${session.program} continues none at the terminal`,
    )
  const folder = await realpath(opened.folder ?? process.cwd())
  const bytes = Buffer.from(opened.transcript, 'base64')
  const env = withSafePath(process.env)
  const path = store.pathOf({ conversation, folder, home: home.run, env })
  const notePath = toNotePath(home.run, session.id)
  const earlier = await readNote(notePath)
  // What was said at the terminal, and not taken back, is newer.
  const isOpen = earlier?.path === path && (await exists(path))
  if (!isOpen) {
    if (earlier) await removeOpened(session.program, earlier)
    const text = toText(store, bytes, folder)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFileAtomic(path, text)
    const note: OpenNote = { conversation, turns: session.turns, folder, path }
    await writeFileAtomic(notePath, JSON.stringify(note))
    await store.imported?.(path, folder, env)
  }
  const [program, ...args] = store.command(conversation, path)
  const command = ['cd', folder, '&&', program, ...args].map((word) =>
    word === '&&' ? word : shellWord(word),
  )
  const back = `doorward session close ${words.map(shellWord).join(' ')}`
  if (terminal.json)
    return terminal.printJson({ session, folder, command: [program, ...args], close: back })
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    terminal.print(command.join(' '))
    return terminal.say(`afterwards: ${back}`)
  }
  terminal.say(`${folder}\nafterwards: ${back}`)
  process.chdir(folder)
  await execChild(program, args, env)
}

const exists = async (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Throws `session-not-found` for a transcript that is damaged. */
const toText = (store: Store, bytes: Uint8Array, folder: string): string => {
  try {
    return store.toFile(bytes, folder)
  } catch (error) {
    throw new DoorwardError('session-not-found', 'the transcript is damaged', {
      hint: 'the next event starts a new conversation',
      cause: error,
    })
  }
}

/**
 * Takes back a conversation that `open` has put into the program's own store, as it is now, and removes it there,
 * with the checkout. Throws `session-not-found` and `session-changed`.
 */
export const closeSession = async (context: Context, words: readonly string[]): Promise<void> => {
  const { terminal, home } = context
  const closed = await withDaemon(context, async (client) => {
    const { id, program } = await findSession(client, words)
    const notePath = toNotePath(home.run, id)
    const note = await readNote(notePath)
    const store = programStores[program]
    if (!note || !store)
      throw new DoorwardError('session-not-found', 'it is not open at the terminal', {
        hint: `doorward session open ${words.map(shellWord).join(' ')}`,
      })
    const left = await store.takeOut(note, process.env)
    if (!left)
      throw new DoorwardError('session-not-found', `${program} no longer has this conversation`, {
        hint: 'doorward goes on with its own copy',
      })
    const answer = await client.post<SessionSummary>(`/sessions/${id}/close`, {
      conversation: left.conversation,
      transcript: left.bytes.toString('base64'),
      turns: note.turns,
    })
    await left.remove()
    await rm(notePath, { force: true })
    return answer
  })
  if (terminal.json) terminal.printJson(closed)
  else terminal.print(`took back ${closed.key}: the next event goes on with it`)
}
