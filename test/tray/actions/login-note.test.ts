import assert from 'node:assert/strict'
import type { Login, Logout } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Action } from '../../../tray/view.ts'
import { toFailureNote, type Note } from '../../../tray/notifications/note.ts'
import { toLoginNote, toLogoutNote } from '../../../tray/actions/login.ts'

const login = (more: Partial<Login>): Note =>
  toLoginNote({ loginId: 'x', provider: 'github', status: 'authorized', ...more })
const logout = (more: Partial<Logout>): Note =>
  toLogoutNote({ provider: 'slack', removed: true, revokedAtProvider: true, ...more })
const failure = (action: Action, error: unknown): Note => toFailureNote(action, error)

describe('the note about an action', () => {
  const cases: [string, Note, string, string, boolean, key?: string][] = [
    [
      'a login',
      login({ account: { id: '1', name: 'octocat' } }),
      'logged in to GitHub',
      'As octocat',
      false,
      'login github',
    ],
    [
      'a login that takes the place of another and lacks something',
      login({
        account: { id: '1', name: 'octocat' },
        replaced: { id: '2', name: 'other' },
        missingScopes: ['repo', 'user'],
      }),
      'logged in to GitHub',
      'As octocat\nReplaces other\nNot granted: repo, user',
      false,
      'login github',
    ],
    [
      'a login without an account name',
      login({ account: null }),
      'logged in to GitHub',
      'GitHub does not name the account',
      false,
      'login github',
    ],
    [
      'a login that failed',
      login({
        status: 'failed',
        error: { code: 'login-denied', message: 'you did not allow it', hint: 'try again' },
      }),
      'not logged in to GitHub',
      'You did not allow it\ntry again',
      true,
      'login github',
    ],
    [
      'a login that was not finished',
      login({ status: 'expired' }),
      'not logged in to GitHub',
      'The login was not finished in time',
      true,
      'login github',
    ],
    [
      'a logout that was confirmed',
      logout({ detail: 'the refresh token is revoked; so is the access token' }),
      'logged out of Slack',
      'Slack confirmed the revocation\nthe refresh token is revoked; so is the access token',
      false,
      'login slack',
    ],
    [
      'a logout that was not',
      logout({ revokedAtProvider: false }),
      'logged out of Slack on this machine',
      'Slack did not confirm a revocation: remove the access in your account there',
      true,
      'login slack',
    ],
    [
      'a refusal of the daemon',
      failure(
        { do: 'retry-event', id: 'x' },
        new DoorwardError('event-not-retryable', 'it did not fail', { hint: 'wait' }),
      ),
      'the event was not retried',
      'It did not fail\nwait',
      true,
    ],
    [
      'a start that failed, replacing an earlier note about the daemon',
      failure(
        { do: 'start-daemon' },
        new DoorwardError('daemon-unreachable', 'the daemon did not start: it ended'),
      ),
      'the daemon was not started',
      'The daemon did not start: it ended',
      true,
      'daemon',
    ],
    [
      'an error whose text must not be shown',
      failure({ do: 'copy-diagnostics' }, new Error('the token abc')),
      'diagnostics were not copied',
      'Error',
      true,
    ],
  ]
  for (const [what, note, title, body, fails, key] of cases)
    it(`for ${what} says: ${title}`, () => {
      assert.deepEqual(note, {
        subject: title,
        body,
        ...(fails && { failure: true }),
        ...(key && { key }),
      })
    })
})
