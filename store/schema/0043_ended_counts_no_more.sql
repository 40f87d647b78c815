-- A workload that has ended counts no more: the span of the state `ended`, which has no end, is nothing that
-- goes on: docs/adr/0031. Rows of before, which counted for ever, are written anew by cutting all lives anew.
delete from watermark
where job = 'lives';
