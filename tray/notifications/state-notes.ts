import type { Status, StatusProblem } from '../../shared/api/api.ts'
import { providerToLogIn } from '../../shared/client/discovery.ts'
import type { StartFailure } from '../../shared/client/spawn.ts'
import { describeProblem, findConfigFile, getFix, providerTitle, upperFirst } from '../wording.ts'
import { type Note, type NoteButton, toBody, daemonKey, loginKey, missedButtons } from './note.ts'
import { needsLogin } from '../attention.ts'

/*
 * Notes about the state of the daemon rather than about events. A problem is shown once, and again only
 * after it was resolved; a login is shown when one was missing.
 */

/** What was shown and still applies. */
export type Announced = {
  /** By problem or login, the key of its note. */
  readonly noteKeys: ReadonlyMap<string, string>
  /** The providers without a usable login. */
  readonly loggedOut: ReadonlySet<string>
}

export const nothingAnnounced: Announced = { noteKeys: new Map(), loggedOut: new Set() }

/** The notes for a status, the keys of those to close, and what to pass with the next status. */
export const toStatusNotes = (
  status: Status,
  before: Announced,
  isReportingLogin: (provider: string) => boolean,
): {
  readonly notes: readonly Note[]
  readonly resolved: readonly string[]
  readonly announced: Announced
} => {
  const problems = listNotifiedProblems(status)
  const logins = loginNotes(status)
  const isNew = ([key]: readonly [string, unknown]) => !before.noteKeys.has(key)
  const newProblems = problems.filter(isNew)
  const noteKeys = new Map([
    ...logins.map(([key]) => [key, key] as const),
    ...problems.map(
      ([key]) => [key, before.noteKeys.get(key) ?? toProblemNoteKey(key, newProblems)] as const,
    ),
  ])
  // The note about a successful login replaces the note that asked for it.
  const loggedIn = status.providers.filter(({ status: state }) => state === 'ok')
  const kept = new Set([
    ...noteKeys.values(),
    ...loggedIn.map(({ provider }) => loginKey(provider)),
  ])
  const loggedOut = status.providers
    .filter((provider) => provider.status === 'not-logged-in' || needsLogin(status, provider))
    .map(({ provider }) => provider)
  const newlyLoggedIn = loggedIn.filter(
    ({ provider }) => before.loggedOut.has(provider) && !isReportingLogin(provider),
  )
  return {
    notes: [
      ...problemNotes(newProblems.map(([, problem]) => problem)),
      ...logins.filter(isNew).map(([, note]) => note),
      ...newlyLoggedIn.map(({ provider, account }) => ({
        subject: `${providerTitle(provider)}: logged in`,
        body: toBody(account ? `as ${account.name}` : 'the tokens are stored on this machine'),
        key: loginKey(provider),
      })),
    ],
    resolved: [...new Set(before.noteKeys.values())].filter((key) => !kept.has(key)),
    announced: { noteKeys, loggedOut: new Set(loggedOut) },
  }
}

export const crashNote: Note = {
  subject: 'the daemon crashed',
  body: 'Webhooks are not answered until it runs again.',
  failure: true,
  key: daemonKey,
  buttons: [{ label: 'Start daemon', action: { do: 'start-daemon' } }],
}

export const startFailureNote = (failure: StartFailure): Note => {
  const file = findConfigFile(failure.about)
  return {
    subject: 'the daemon did not start',
    body: toBody(describeProblem(failure)),
    failure: true,
    key: daemonKey,
    buttons: [
      ...(file ? [{ label: 'Open', action: { do: 'open-configuration', file } } as const] : []),
      { label: 'Start daemon', action: { do: 'start-daemon' } },
    ],
  }
}

/** Problems that keep something from working. The others are only in the menu. */
const notifiedCodes: ReadonlySet<string> = new Set([
  'config-invalid',
  'home-insecure',
  'home-unusable',
  'secret-unset',
  'secret-unusable',
  'agent-key-unset',
  'target-secret-unset',
  'target-secret-wrong',
  'agent-program-missing',
  'agent-folder-missing',
  'token-file-damaged',
  'token-file-insecure',
  'keychain-unavailable',
  'over-budget',
  'budget-used',
  'deliveries-missed',
  'schedule-missed',
  'tunnel-down',
  'tunnel-failed',
])

/** Each problem with the key by which it is shown once. */
const listNotifiedProblems = ({ problems }: Status): (readonly [string, StatusProblem])[] =>
  problems
    .filter((problem) => notifiedCodes.has(problem.code) && providerToLogIn(problem) === undefined)
    // One key for all: while someone edits a file, its errors change with every save.
    .map((problem) => [problem.code === configInvalid ? configInvalid : problem.detail, problem])

const configInvalid = 'config-invalid'

/** Problems that appear together share a note: one unset secret may affect many webhooks. */
const problemNotes = (problems: readonly StatusProblem[]): Note[] => {
  const faults = problems.filter(({ code }) => code === configInvalid)
  const others = problems.filter(({ code }) => code !== configInvalid)
  return [
    ...problemNote('configuration broken', configInvalid, faults),
    ...problemNote(
      others.length > 1 ? `${others.length} things need you` : 'something needs you',
      others[0]?.detail ?? '',
      others,
    ),
  ]
}

const problemNote = (title: string, key: string, problems: readonly StatusProblem[]): Note[] => {
  const [first] = problems
  if (!first) return []
  return [
    {
      subject: title,
      body: toBody(problems.map(describeProblem).join('\n')),
      failure: true,
      key: problemKey(key),
      buttons: fixButtons(first),
    },
  ]
}

const problemKey = (key: string): string => `problem ${key}`

/** The key of the note that shows a new problem: that of the first problem in the note. */
const toProblemNoteKey = (
  key: string,
  together: readonly (readonly [string, StatusProblem])[],
): string => {
  if (key === configInvalid) return problemKey(key)
  return problemKey(together.find(([other]) => other !== configInvalid)?.[0] ?? key)
}

const fixButtons = (problem: StatusProblem): NoteButton[] => {
  if (problem.code === 'deliveries-missed')
    return [missedButtons.run, missedButtons.show, missedButtons.skip]
  const action = getFix(problem)
  return [{ label: action.do === 'open-configuration' ? 'Open' : 'What to do', action }]
}

const loginNotes = (status: Status): (readonly [string, Note])[] =>
  status.providers
    .filter((provider) => needsLogin(status, provider))
    .map(({ provider }) => {
      const why = status.problems.find((problem) => providerToLogIn(problem) === provider)?.detail
      const key = loginKey(provider)
      return [
        key,
        {
          subject: `${providerTitle(provider)}: log in again`,
          body: toBody(upperFirst(why ?? 'the login is no longer valid')),
          failure: true,
          key,
          buttons: [{ label: 'Log in', action: { do: 'login', provider } }],
        },
      ]
    })
