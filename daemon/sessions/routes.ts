import type { Router } from '@koa/router'
import { closeSessionSchema, type OpenedSession } from '../../shared/api/sessions.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { readJsonBody } from '../http/body.ts'
import type { Workspace } from '../workspace/workspaces.ts'
import type { Session, SessionCode, Sessions } from './sessions.ts'

export type SessionRoutesParts = {
  readonly sessions: Sessions
  /** Makes the code that the last event of a session saw. */
  readonly checkOut: (code: SessionCode, signal: AbortSignal) => Promise<Workspace>
}

/** Base64 of the longest transcript. */
const maxBodyBytes = 24 * 1024 ** 2

/** The conversations in the local API. */
export const addSessionRoutes = (
  router: Router,
  { sessions, checkOut }: SessionRoutesParts,
): void => {
  /** The folders of those that are open at the terminal. */
  const folders = new Map<string, Workspace>()
  const find = (id: unknown): Session => {
    const session = sessions.get(String(id))
    if (session) return session
    throw new DoorwardError('session-not-found', 'there is no such conversation', {
      hint: 'doorward session list',
    })
  }
  const release = async (id: string): Promise<void> => {
    const folder = folders.get(id)
    folders.delete(id)
    await folder?.release()
  }
  router.get('/sessions', (ctx) => {
    ctx.body = { sessions: sessions.list() }
  })
  router.get('/sessions/:id', (ctx) => {
    ctx.body = sessions.summarize(find(ctx.params['id']))
  })
  router.delete('/sessions/:id', async (ctx) => {
    const session = find(ctx.params['id'])
    const summary = sessions.summarize(session)
    sessions.forget(session.name)
    await release(session.name)
    ctx.body = summary
  })
  router.post('/sessions/:id/open', async (ctx) => {
    const session = find(ctx.params['id'])
    const { name, transcript, code } = session
    if (!transcript)
      throw new DoorwardError('session-not-found', 'the next event starts a new conversation', {
        hint: session.why,
      })
    if (code && !folders.has(name))
      folders.set(name, await checkOut(code, new AbortController().signal))
    const opened: OpenedSession = {
      session: sessions.summarize(session),
      conversation: transcript.id,
      transcript: Buffer.from(transcript.bytes).toString('base64'),
      folder: folders.get(name)?.path ?? null,
    }
    ctx.body = opened
  })
  router.post('/sessions/:id/close', async (ctx) => {
    const { name, turns, transcript } = find(ctx.params['id'])
    const body = await readJsonBody(ctx, closeSessionSchema, maxBodyBytes)
    if (turns !== body.turns || !transcript)
      throw new DoorwardError(
        'session-changed',
        'events have gone on with it since it was opened',
        {
          hint: 'open it again, which leaves out what you said, or forget it',
        },
      )
    const bytes = Buffer.from(body.transcript, 'base64')
    ctx.body = sessions.summarize(sessions.takeBack(name, body.conversation, bytes))
    await release(name)
  })
}
