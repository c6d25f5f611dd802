import assert from 'node:assert/strict'
import { after, before, describe, it } from 'mocha'
import type { EventDetail, EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { type GitlabServer, startGitlabServer } from '../../support/servers/gitlab-server.ts'
import { send } from '../../support/servers/http.ts'
import { type PullRequestScene, startPullRequest } from '../../support/servers/pull-request.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { temporaryHome } from '../../support/temporary.ts'

const secret = 'a secret of the tests'
const gitlabSecret = 'a token of a hook'
/** What `storeLogin` stores. */
const token = 'of-before'
const repository = { full_name: 'acme/door' }

const webhooks = `
webhooks:
  - path: /github
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    rules:
      - name: answer
        mention: '@doorward'
        workspace: { repo: '{{event.repository.full_name}}' }
        context: [diff]
        prompt_template: |
          {{event.comment.body}}{{event.review.body}}
          {{context.diff}}
        deliver_to: reply
  - path: /named
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    mention: '@doorward'
    prompt_template: ran
    deliver_to: reply
    workspace: { repo: acme/door, ref: '{{pull.head.sha}}', base: '{{pull.base.sha}}', login: github }
    context: [files]
  - path: /gitlab
    signature_scheme: gitlab
    secret_env: GITLAB_HOOK
    agent: echo
    mention: '@doorward'
    prompt_template: '{{event.object_attributes.note}}'
    deliver_to: reply
    who: [ada]
  - path: /anyone
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    mention: '@doorward'
    who: anyone
    allowed_bots: [renovate]
    prompt_template: ran
`.replace(
  'prompt_template: ran\n    deliver_to: reply',
  "prompt_template: '{{context.files}}'\n    deliver_to: reply",
)

describe('a comment that names doorward', () => {
  let scene: PullRequestScene
  let gitlab: GitlabServer
  let daemon: RunningDaemon

  before(async () => {
    scene = await startPullRequest(token)
    gitlab = await startGitlabServer()
    for (const [login, role] of [
      ['ada', 'write'],
      ['reader', 'read'],
    ] as const)
      scene.github.roles.set(login, role)
    const home = await temporaryHome({
      env: `HOOK_SECRET=${secret}\nGITLAB_HOOK=${gitlabSecret}\nGITLAB_TOKEN=of-gitlab\n`,
      gateway: scene.gateway.replace(
        'targets: { ',
        `targets: { gitlab: { api_url: "${gitlab.apiUrl}", token_env: GITLAB_TOKEN }, `,
      ),
      webhooks,
    })
    await storeLogin(home, 'github', 'a refresh token')
    daemon = await startDaemon({ home })
    await scene.push({ 'hello.txt': 'hello\nyou\n' }, 'opened')
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    scene.close()
    gitlab.close()
  })

  const post = async (path: string, event: string, payload: object): Promise<EventDetail> => {
    const body = JSON.stringify(payload)
    const headers = githubHeaders(body, secret, { 'x-github-event': event })
    const reply = await send(`${daemon.url}${path}`, { headers, body })
    assert.equal(reply.status, 202, reply.text)
    return untilFinished(daemon, String(reply.json()['id']))
  }
  let id = 0
  const comment = (body: string, more: object = {}) => ({
    action: 'created',
    issue: { number: 7, pull_request: { url: 'https://api.github.com/' } },
    comment: { id: (id += 1), body },
    repository,
    sender: { login: 'ada', type: 'User' },
    ...more,
  })
  const stateOf = ({ state, code }: EventDetail) => [state, code]
  const lastComment = () => scene.github.comments.at(-1)?.body ?? ''

  it('gets the change of the pull request, as GitHub names its commits, and is answered there', async () => {
    const event = await post('/github', 'issue_comment', comment('@doorward why?'))
    assert.equal(event.state, 'done', event.detail)
    assert.match(lastComment(), /\nwhy\?|why\?\n[^]*\+you/)
    assert.equal(event.targets[0]?.target, 'github:acme/door#7')
    const asked = scene.github.requests.filter(
      ({ path }) => path === '/api/v3/repos/acme/door/pulls/7',
    )
    assert.equal(asked.length, 1)
  })

  it('keeps to the commit that was asked for, of a fork too', async () => {
    await scene.push({ 'hello.txt': 'hello\nall\n' }, 'synchronize')
    const event = await post('/named', 'issue_comment', comment('@doorward which files?'))
    assert.equal(event.state, 'done', event.detail)
    assert.match(lastComment(), /hello\.txt/)
  })

  it('gets the default branch on an issue', async () => {
    const issue = { number: 7 }
    const event = await post('/github', 'issue_comment', comment('@doorward hello', { issue }))
    assert.equal(event.state, 'done', event.detail)
    assert.match(lastComment(), /\(no changes\)/)
  })

  it('is answered in the thread of its review, and below the pull request where that was deleted', async () => {
    const head = { sha: scene.github.pull.head }
    const pull_request = { number: 7, head, base: { sha: scene.github.pull.base } }
    const ofThread = (more: object) => ({
      ...comment('', { pull_request, issue: undefined, ...more }),
    })
    const answer = { id: 33, in_reply_to_id: 11, body: '@doorward is that so?' }
    const event = await post(
      '/github',
      'pull_request_review_comment',
      ofThread({ comment: answer }),
    )
    assert.equal(event.state, 'done', event.detail)
    assert.equal(event.targets[0]?.target, 'github:acme/door#7/r11')
    const [reply] = scene.github.replies
    assert.equal(reply?.to, 11)
    assert.match(reply?.body ?? '', /^<!-- doorward:[^]*is that so\?[^]*\+all/)
    assert.deepEqual(
      event.links?.map(({ what }) => what),
      ['comment'],
    )

    const deleted = { id: 404, body: '@doorward and that?' }
    const late = await post(
      '/github',
      'pull_request_review_comment',
      ofThread({ comment: deleted }),
    )
    assert.deepEqual(stateOf(late), ['done', undefined])
    assert.match(late.targets[0]?.detail ?? '', /was deleted: answered below the pull request/)
    assert.match(lastComment(), /and that\?/)

    const review = { id: 9, body: '@doorward look again' }
    const action = 'submitted'
    const ofReview = ofThread({ action, review, comment: undefined })
    const reviewed = await post('/github', 'pull_request_review', ofReview)
    assert.equal(reviewed.targets[0]?.target, 'github:acme/door#7')
    assert.match(lastComment(), /look again/)
  })

  it('runs nothing for other comments, strangers and bots', async () => {
    const quiet = await post('/github', 'issue_comment', comment('> @doorward why?\n\nBecause.'))
    assert.deepEqual(stateOf(quiet), ['filtered', undefined])
    assert.match(quiet.detail ?? '', /answer: it does not name @doorward/)
    const stranger = comment('@doorward why?', { sender: { login: 'reader', type: 'User' } })
    const refused = await post('/github', 'issue_comment', stranger)
    assert.deepEqual(stateOf(refused), ['filtered', 'not-allowed'])
    assert.match(refused.detail ?? '', /reader has the role read in acme\/door, and who is write/)
    const bot = (login: string) => ({ sender: { login, type: 'Bot' } })
    const ofBot = await post('/anyone', 'issue_comment', comment('@doorward', bot('other[bot]')))
    assert.deepEqual(stateOf(ofBot), ['filtered', 'not-allowed'])
    for (const one of [bot('renovate[bot]'), { sender: { login: 'stranger' } }])
      assert.equal(
        (await post('/anyone', 'issue_comment', comment('@doorward', one))).state,
        'done',
      )
  })

  it('is asked once, however often it is edited, also after a restart', async () => {
    const first = comment('why?')
    assert.equal((await post('/anyone', 'issue_comment', first)).state, 'filtered')
    const edit = (from: string, body: string) => ({
      ...first,
      action: 'edited',
      comment: { ...first.comment, body },
      changes: { body: { from } },
    })
    const named = await post('/anyone', 'issue_comment', edit('why?', '@doorward why?'))
    assert.equal(named.state, 'done')
    const again = await post('/anyone', 'issue_comment', edit('@doorward why?', '@doorward why!'))
    assert.match(again.detail ?? '', /before it was edited, and was asked once/)
    const away = edit('why?', '@doorward why?')
    assert.equal((await post('/anyone', 'issue_comment', away)).state, 'duplicate')
    assert.equal(await daemon.stop(), 0)
    daemon = await startDaemon({ home: daemon.home })
    assert.equal((await post('/anyone', 'issue_comment', away)).state, 'duplicate')
  })

  it('is not asked by what doorward wrote itself, and may be by its account', async () => {
    const own = lastComment()
    assert.match(own, /^<!-- doorward:/)
    const ignored = await post('/github', 'issue_comment', comment(own))
    assert.match(ignored.detail ?? '', /our own comment/)
    const byAccount = comment('@doorward and now?', { sender: { login: 'ada', type: 'User' } })
    assert.equal((await post('/github', 'issue_comment', byAccount)).state, 'done')
  })

  it('is answered in its discussion at GitLab', async () => {
    const note = async (discussion: string): Promise<EventRecord> => {
      const body = JSON.stringify({
        object_kind: 'note',
        object_attributes: {
          id: (id += 1),
          note: '@doorward why?',
          noteable_type: 'MergeRequest',
          discussion_id: discussion,
        },
        merge_request: { iid: 7 },
        project: { path_with_namespace: 'acme/tools/door' },
        user: { id: 1, username: 'ada' },
      })
      const headers = {
        'content-type': 'application/json',
        'x-gitlab-event': 'Note Hook',
        'x-gitlab-token': gitlabSecret,
      }
      const reply = await send(`${daemon.url}/gitlab`, { headers, body })
      assert.equal(reply.status, 202, reply.text)
      return untilFinished(daemon, String(reply.json()['id']))
    }
    const gone = await note('a'.repeat(40))
    assert.equal(gone.state, 'done', gone.detail)
    assert.match(gone.targets[0]?.detail ?? '', /the comment was deleted: answered as a new one/)
    const thread = String(1).padStart(40, 'f')
    const event = await note(thread)
    assert.equal(event.state, 'done', event.detail)
    assert.equal(event.targets[0]?.target, `gitlab:acme/tools/door!7/${thread}`)
    assert.match(gitlab.requests.at(-1)?.path ?? '', new RegExp(`/discussions/${thread}/notes$`))
  })

  it('is explained without running anything', async () => {
    const { stdout } = await run(
      ['webhook', 'explain', '/anyone', '--sample', 'github:issue_comment.created'],
      { home: daemon.home },
    )
    assert.match(stdout, /mention +✗ it does not name @doorward/)
  })

  describe('in the configuration', () => {
    const check = async (rules: readonly (readonly [scheme: string, more: string])[]) => {
      const entries = rules.map(
        ([scheme, more], place) =>
          `  - path: /a${place}\n    signature_scheme: ${scheme}\n    secret_env: HOOK_SECRET\n    agent: echo\n    prompt_template: ran\n${more}`,
      )
      const home = await temporaryHome({
        env: `HOOK_SECRET=${secret}\n`,
        webhooks: `webhooks:\n${entries.join('')}`,
      })
      const { stdout, stderr } = await run(['config', 'check'], { home })
      return stdout + stderr
    }
    const mention = "    mention: '@doorward'\n"
    const reply = '    deliver_to: reply\n'

    it('is refused where nobody is named, or answered', async () => {
      assert.match(await check([['github', "    mention: 'doorward'\n"]]), /not a name such as/)
      const refused = await check([
        ['stripe', mention],
        ['stripe', reply],
        ['github', `${reply}    update: true\n`],
        ['github', '    deliver_to: repyl\n'],
      ])
      assert.match(
        refused,
        /deliveries with signature_scheme stripe have no comments that could name it/,
      )
      assert.match(refused, /an event of signature_scheme stripe has no place for a reply/)
      assert.match(refused, /no target of this rule is github:/)
      assert.match(refused, /did you mean "reply"/)
    })

    it('is taken of each sender that names people, and a login has to know them', async () => {
      const taken = await check([
        ...['github', 'gitlab', 'slack', 'linear'].map((scheme) => [scheme, reply] as const),
        ...['gitlab', 'slack', 'telegram'].map((scheme) => [scheme, mention] as const),
        ['github', `${mention}    who: anyone\n    allowed_bots: [renovate]\n`],
      ])
      assert.match(taken, /^ok: 8 webhooks/m)
      assert.match(taken, /no login can ask gitlab for roles/)
      assert.doesNotMatch(taken, /has no effect/)
    })
  })
})
