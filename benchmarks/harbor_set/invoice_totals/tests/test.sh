#!/bin/bash
# The reward is 1 if the program is right for the given file and for another one.
cd /app
printf 'customer,quantity,price\nZoe,2,1.25\nAda,,3\nAda,4,2.5\nZoe,1,\n' > /tmp/other.csv
if [ "$(python totals.py orders.csv)" = $'Bo 12.20\nNia 12.75' ] &&
  [ "$(python totals.py /tmp/other.csv)" = $'Ada 10.00\nZoe 2.50' ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
