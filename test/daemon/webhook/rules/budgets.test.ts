import assert from 'node:assert/strict'
import { RunBudgets } from '../../../../daemon/webhook/rules/budgets.ts'

describe('the runs of a rule with max_runs', () => {
  const hour = 3_600_000
  const rule = { path: '/a', name: 'review', maxRuns: { count: 2, perMs: hour } }
  const other = { ...rule, name: 'triage' }
  const usedUp = (budgets: RunBudgets) => {
    budgets.count(rule, 0)
    budgets.count(rule, hour / 2)
    return budgets
  }

  it('are no more than that in any hour, and counted for each rule', () => {
    const budgets = usedUp(new RunBudgets())
    assert.equal(budgets.isOver(rule, hour - 1), true)
    assert.equal(budgets.isOver(other, hour - 1), false)
    assert.equal(budgets.isOver(rule, hour), false)
    budgets.count(rule, hour)
    assert.equal(budgets.isOver(rule, hour), true)
    assert.equal(budgets.isOver(rule, hour * 1.5), false)
  })

  it('have no limit without it', () => {
    const budgets = new RunBudgets()
    const free = { ...rule, maxRuns: undefined }
    budgets.count(free, 0)
    assert.equal(budgets.isOver(free, 0), false)
  })

  it('are told to be used up once, until one more has run', () => {
    const budgets = usedUp(new RunBudgets())
    assert.deepEqual([budgets.noteFiltered(rule), budgets.noteFiltered(rule)], [true, false])
    budgets.count(rule, hour)
    assert.equal(budgets.noteFiltered(rule), true)
  })

  it('still count after a restart and after another limit was set', () => {
    const budgets = new RunBudgets()
    budgets.restore(usedUp(new RunBudgets()).snapshot(hour / 2), 1_000_000)
    assert.equal(budgets.isOver(rule, 1_000_000), true)
    const more = { ...rule, maxRuns: { count: 3, perMs: hour } }
    assert.equal(budgets.isOver(more, 1_000_000), false)
    budgets.count(more, 1_000_000)
    assert.equal(budgets.isOver(more, 1_000_000), true)
    budgets.giveBack(more)
    assert.equal(budgets.isOver(more, 1_000_000), false)
  })
})
